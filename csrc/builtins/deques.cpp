// collections.deque: a list that may have a bound.
#include <algorithm>

#include "builtins/table.h"
#include "cpython/compat.h"
#include "torch/types.h"

namespace cdynamo {

namespace {

ListValue* selfDeque(Trace& t, CallArgs& a) {
  ListValue* d = a.args.empty() ? nullptr : asList(a.args[0]);
  if (!d) unsupported(BreakReason::MethodCall, "a method of deque on " + (a.args.empty() ? "nothing" : describe(a.args[0])));
  t.load(d);
  return d;
}

void append(Trace& t, ListValue* d, Value* v) {
  auto items = d->items;
  items.push_back(v);
  if (d->maxlen >= 0 && static_cast<int64_t>(items.size()) > d->maxlen) items.erase(items.begin());
  t.setItems(d, std::move(items));
}
void appendLeft(Trace& t, ListValue* d, Value* v) {
  auto items = d->items;
  items.insert(items.begin(), v);
  if (d->maxlen >= 0 && static_cast<int64_t>(items.size()) > d->maxlen) items.pop_back();
  t.setItems(d, std::move(items));
}

// Item by item: what was read before an iterator failed is in the deque.
template <void (*put)(Trace&, ListValue*, Value*)>
void extend(Trace& t, ListValue* d, Value* source) {
  bool itself = asList(source) == d;
  Value* it = iterate(t, itself ? t.list(d->items) : source);
  while (Value* v = next(t, it)) put(t, d, v);
}

Value* makeDeque(Trace& t, CallArgs& a) {
  Value* bound = a.takeKeyword("maxlen");
  Value* iterable = a.takeKeyword("iterable");
  if ((iterable && !a.args.empty()) || (bound && a.args.size() > 1)) throw WrongArguments{};
  expectArgs(a, 0, 2);
  if (!a.args.empty()) iterable = a.args[0];
  if (a.args.size() > 1) bound = a.args[1];
  ListValue* d = t.list({});
  d->type = dequeType();
  if (bound && !isSame(t, bound, t.none())) {
    PyObject* c = t.constant(bound);
    if (!c || !PyLong_Check(c)) raise(t, PyExc_TypeError, "an integer is required");
    long long n = indexArgument(t, bound);
    if (n < 0) raise(t, PyExc_ValueError, "maxlen must be non-negative");
    d->maxlen = n;
  }
  if (iterable) extend<append>(t, d, iterable);
  return d;
}
Value* dequeAppend(Trace& t, CallArgs& a) { return append(t, selfDeque(t, a), a.args[1]), t.none(); }
Value* dequeAppendleft(Trace& t, CallArgs& a) { return appendLeft(t, selfDeque(t, a), a.args[1]), t.none(); }
Value* dequeExtend(Trace& t, CallArgs& a) { return extend<append>(t, selfDeque(t, a), a.args[1]), t.none(); }
Value* dequeExtendleft(Trace& t, CallArgs& a) { return extend<appendLeft>(t, selfDeque(t, a), a.args[1]), t.none(); }

template <bool left>
Value* dequePop(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  if (d->items.empty()) raise(t, PyExc_IndexError, "pop from an empty deque");
  auto items = d->items;
  auto at = left ? items.begin() : items.end() - 1;
  Value* v = *at;
  items.erase(at);
  t.setItems(d, std::move(items));
  return v;
}
Value* dequeRotate(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  expectArgs(a, 1, 2);
  long long n = a.args.size() > 1 ? indexArgument(t, a.args[1]) : 1;
  auto items = d->items;
  if (!items.empty()) {
    long long size = static_cast<long long>(items.size());
    n = ((n % size) + size) % size;
    std::rotate(items.begin(), items.end() - n, items.end());
  }
  t.setItems(d, std::move(items));
  return t.none();
}
Value* dequeInsert(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  expectArgs(a, 3, 3);
  auto items = d->items;
  long long n = static_cast<long long>(items.size()), i = indexArgument(t, a.args[1]);
  if (d->maxlen >= 0 && n >= d->maxlen) raise(t, PyExc_IndexError, "deque already at its maximum size");
  if (i < 0) i = std::max(0LL, i + n);
  items.insert(items.begin() + std::min(i, n), a.args[2]);
  t.setItems(d, std::move(items));
  return t.none();
}
Value* dequeClear(Trace& t, CallArgs& a) { return t.setItems(selfDeque(t, a), {}), t.none(); }
Value* dequeReverse(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  auto items = d->items;
  std::reverse(items.begin(), items.end());
  t.setItems(d, std::move(items));
  return t.none();
}

// Finds an item by comparing; the deque must stay as it is meanwhile.
long long find(Trace& t, ListValue* d, Value* wanted, long long start, long long stop) {
  int64_t resizes = d->resizes;
  for (long long i = start; i < stop; i++) {
    bool found = equals(t, d->items[static_cast<size_t>(i)], wanted);
    if (d->resizes != resizes) raise(t, PyExc_RuntimeError, "deque mutated during iteration");
    if (found) return i;
  }
  return -1;
}
Value* dequeRemove(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  int64_t resizes = d->resizes;
  for (size_t i = 0; i < d->items.size(); i++) {
    bool found = equals(t, d->items[i], a.args[1]);
    if (d->resizes != resizes) raise(t, PyExc_IndexError, "deque mutated during iteration");
    if (!found) continue;
    auto items = d->items;
    items.erase(items.begin() + static_cast<ptrdiff_t>(i));
    t.setItems(d, std::move(items));
    return t.none();
  }
  raiseNotIn(t, a.args[1], "deque");
}
Value* dequeIndex(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  expectArgs(a, 2, 4);
  long long n = static_cast<long long>(d->items.size());
  auto [start, stop] = searchBounds(t, a, n);
  long long at = find(t, d, a.args[1], start, std::min(stop, n));
  if (at < 0) raiseNotIn(t, a.args[1], "deque");
  return t.integer(at);
}
Value* dequeCount(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  int64_t resizes = d->resizes;
  long long n = 0;
  for (size_t i = 0; i < d->items.size(); i++) {
    n += equals(t, d->items[i], a.args[1]);
    if (d->resizes != resizes) raise(t, PyExc_RuntimeError, "deque mutated during iteration");
  }
  return t.integer(n);
}
Value* dequeCopy(Trace& t, CallArgs& a) {
  ListValue* d = selfDeque(t, a);
  if (a.args[0]->kind == Kind::Instance) unsupported(BreakReason::MethodCall, "copying " + describe(a.args[0]));
  ListValue* copy = t.list(d->items);
  copy->type = dequeType();
  copy->maxlen = d->maxlen;
  return copy;
}

}  // namespace

void addDequeMethods(BuiltinTable& table) {
  struct Row {
    const char* name;
    BuiltinHandler handler;
  };
  const Row rows[] = {{"append", dequeAppend},   {"appendleft", dequeAppendleft}, {"extend", dequeExtend}, {"extendleft", dequeExtendleft},
                      {"pop", dequePop<false>},  {"popleft", dequePop<true>},     {"rotate", dequeRotate}, {"copy", dequeCopy},
                      {"__copy__", dequeCopy},   {"clear", dequeClear},           {"remove", dequeRemove}, {"insert", dequeInsert},
                      {"reverse", dequeReverse}, {"index", dequeIndex},           {"count", dequeCount}};
  for (const Row& r : rows) table.addType(dequeType(), r.name, r.handler);
  table.add("collections.deque", makeDeque);
}

}  // namespace cdynamo
