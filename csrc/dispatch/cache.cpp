#include "dispatch/cache.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/exceptions.h"
#include "base/keep_alive.h"
#include "base/small_vector.h"
#include "cpython/frame_hook.h"
#include "dispatch/frame_hook.h"
#include "dispatch/settings.h"

namespace cdynamo {

namespace {

struct CacheKey {
  PyObject* code;
  PyObject* options;
  bool operator==(const CacheKey& other) const { return code == other.code && options == other.options; }
};
struct CacheKeyHash {
  size_t operator()(const CacheKey& key) const {
    return (reinterpret_cast<size_t>(key.code) >> 4) * 0x9E3779B97F4A7C15ull ^ (reinterpret_cast<size_t>(key.options) >> 4);
  }
};

using CacheMap = std::unordered_map<CacheKey, std::shared_ptr<CodeCache>, CacheKeyHash>;

struct Registry {
  CacheMap caches;
  // How many caches there are per options object; each holds one reference to it.
  std::unordered_map<PyObject*, Py_ssize_t> holders;
  // Per code object that has caches: a weak reference whose callback drops them.
  std::unordered_map<PyObject*, ObjectRef> watchers;
  // Options that only caches hold (borrowed, latest last): `compile(f)(x)`, run again, finds what it captured before.
  std::deque<PyObject*> parted;
};

constexpr size_t kMostParted = 16;
// Captures in a row that no second call could use, as a multiple of the limit of recompiles: then no more are made.
constexpr int kMostWasted = 4;

// Never destroyed: at exit the interpreter may be gone before static destructors run.
Registry& registry() {
  static Registry* instance = new Registry();
  return *instance;
}

// Takes the caches whose keys fit out of the registry. They die with the answer, when the registry is whole again.
template <typename Fits>
std::vector<std::shared_ptr<CodeCache>> takeOut(Fits fits) {
  std::vector<std::shared_ptr<CodeCache>> taken;
  Registry& all = registry();
  for (auto it = all.caches.begin(); it != all.caches.end();) {
    if (!fits(it->first)) {
      ++it;
      continue;
    }
    taken.push_back(std::move(it->second));
    it = all.caches.erase(it);
  }
  return taken;
}

// Whether nothing but caches and `others` references hold the options.
bool isParted(PyObject* options, Py_ssize_t others) {
  auto holders = registry().holders.find(options);
  return holders != registry().holders.end() && Py_REFCNT(options) <= holders->second + others;
}

void dropOptions(PyObject* options) {
  auto dying = takeOut([&](const CacheKey& key) { return key.options == options; });
}

void forgetCode(PyObject* code) {
  Registry& all = registry();
  auto dying = takeOut([&](const CacheKey& key) { return key.code == code; });
  for (auto& cache : dying) cache->codeDied();
  auto watcher = all.watchers.find(code);
  if (watcher == all.watchers.end()) return;
  ObjectRef keep = std::move(watcher->second);
  all.watchers.erase(watcher);
}

PyObject* onCodeDeath(PyObject* self, PyObject*) {
  void* code = PyCapsule_GetPointer(self, nullptr);
  if (code == nullptr) return nullptr;
  forgetCode(static_cast<PyObject*>(code));
  return ObjectRef::share(Py_None).release();
}

PyMethodDef onCodeDeathDef = {"forget_code", onCodeDeath, METH_O, nullptr};

void watch(PyObject* code) {
  Registry& all = registry();
  if (all.watchers.count(code)) return;
  ObjectRef capsule = checked(PyCapsule_New(code, nullptr, nullptr));
  ObjectRef callback = checked(PyCFunction_New(&onCodeDeathDef, capsule.get()));
  all.watchers.emplace(code, checked(PyWeakref_NewRef(code, callback.get())));
}

}  // namespace

CodeCache::CodeCache(PyObject* code, PyObject* options) : codeKey_(code), options_(ObjectRef::share(options)) { registry().holders[options]++; }

CodeCache::~CodeCache() {
  auto holders = registry().holders.find(options_.get());
  if (--holders->second == 0) registry().holders.erase(holders);
}

std::shared_ptr<CodeCache> CodeCache::find(PyObject* code, PyObject* options) {
  Registry& all = registry();
  CacheKey key{code, options};
  auto found = all.caches.find(key);
  if (found != all.caches.end()) return found->second;
  watch(code);
  auto made = std::make_shared<CodeCache>(code, options);
  all.caches.emplace(key, made);
  return made;
}

void CodeCache::resetAll() {
  std::vector<std::shared_ptr<CodeCache>> caches;
  for (auto& [key, cache] : registry().caches) caches.push_back(cache);
  for (auto& cache : caches) cache->clear();
  std::deque<PyObject*> parted;
  parted.swap(registry().parted);
  for (PyObject* options : parted)
    if (isParted(options, 0)) dropOptions(options);
}

void CodeCache::leave(ObjectRef options) {
  if (!isParted(options.get(), 1)) return;
  std::deque<PyObject*>& parted = registry().parted;
  parted.push_back(options.get());
  if (parted.size() <= kMostParted) return;
  PyObject* oldest = parted.front();
  parted.pop_front();
  if (std::find(parted.begin(), parted.end(), oldest) != parted.end() || !isParted(oldest, 0)) return;
  dropOptions(oldest);
}

size_t CodeCache::count() { return registry().caches.size(); }

void CodeCache::clear() {
  std::vector<std::shared_ptr<Entry>> dying;
  dying.swap(entries_);
  generation_++;
  skipped_ = limitReported_ = calledBefore_ = false;
  skipReason_.clear();
  openNames_.clear();
  differing_.clear();
  wasted_ = 0;
  // A running call may hold one of them.
  decltype(continuations_) continuations;
  continuations.swap(continuations_);
  for (auto& [chain, cache] : continuations) cache->clear();
}

std::shared_ptr<CodeCache> CodeCache::continuation(const std::shared_ptr<const ResumeChain>& chain) {
  auto& cache = continuations_[chain];
  if (!cache) cache = std::make_shared<CodeCache>(chain->signature.object(), options_.get());
  return cache;
}

namespace {

bool isIn(const ResumeChain& chain, PyObject* code) {
  return std::any_of(chain.frames.begin(), chain.frames.end(),
                     [&](const ResumeChain::Frame& f) { return reinterpret_cast<PyObject*>(f.at->code->pyCode()) == code; });
}

}  // namespace

template <typename Look>
void CodeCache::forEachConstant(const Look& look) const {
  for (const auto& entry : entries_) {
    if (!entry->function || !PyFunction_Check(entry->function.get())) continue;
    PyObject* constants = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(entry->function.get()))->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) look(PyTuple_GET_ITEM(constants, i));
  }
}

std::unordered_map<PyCodeObject*, Py_ssize_t> CodeCache::ownCodes() {
  std::unordered_map<PyCodeObject*, Py_ssize_t> found;
  auto count = [&](const CodeCache& cache, auto isOwn) {
    cache.forEachConstant([&](PyObject* constant) {
      if (PyCode_Check(constant) && isOwn(constant)) found[reinterpret_cast<PyCodeObject*>(constant)]++;
    });
  };
  for (const auto& [key, cache] : registry().caches) {
    count(*cache, [&, code = key.code](PyObject* constant) { return constant == code; });
    for (const auto& [chain, continuation] : cache->continuations_)
      if (continuation) count(*continuation, [&, at = chain.get()](PyObject* constant) { return isIn(*at, constant); });
  }
  return found;
}

std::vector<ObjectRef> CodeCache::deadGlobals(const std::vector<std::shared_ptr<CodeCache>>& caches) {
  std::unordered_map<PyObject*, Py_ssize_t> held;
  std::set<const ResumeChain*> chains;
  auto hold = [&](const std::vector<ResumeChain::Frame>& frames) {
    for (const ResumeChain::Frame& frame : frames) held[frame.globals.get()]++;
  };
  for (const auto& cache : caches) {
    for (const auto& entry : cache->entries_) {
      held[entry->globals.get()]++;
      if (entry->function && PyFunction_Check(entry->function.get())) held[PyFunction_GET_GLOBALS(entry->function.get())]++;
      hold(entry->suspended);
    }
    for (const auto& [chain, continuation] : cache->continuations_)
      if (chains.insert(chain.get()).second) hold(chain->frames);
  }
  for (const auto& cache : caches)
    cache->forEachConstant([&](PyObject* constant) {
      if (auto globals = held.find(constant); globals != held.end()) globals->second++;
    });
  std::vector<ObjectRef> dead;
  for (const auto& [globals, count] : held) {
    if (!globals || !PyDict_Check(globals)) continue;
    Py_ssize_t own = 0, at = 0;
    PyObject *name = nullptr, *value = nullptr;
    while (Py_REFCNT(globals) > count + own && PyDict_Next(globals, &at, &name, &value))
      own += PyFunction_Check(value) && PyFunction_GET_GLOBALS(value) == globals && Py_REFCNT(value) == 1;
    if (Py_REFCNT(globals) == count + own) dead.push_back(ObjectRef::share(globals));
  }
  return dead;
}

void CodeCache::forget(PyObject* code) {
  std::vector<std::shared_ptr<CodeCache>> dying;
  std::vector<std::shared_ptr<const ResumeChain>> chains;
  for (auto& [key, cache] : registry().caches)
    for (auto it = cache->continuations_.begin(); it != cache->continuations_.end();) {
      if (!isIn(*it->first, code)) {
        ++it;
        continue;
      }
      chains.push_back(it->first);
      dying.push_back(std::move(it->second));
      it = cache->continuations_.erase(it);
    }
  forgetCode(code);
}

void CodeCache::purgeAll() {
  std::vector<std::shared_ptr<CodeCache>> caches;
  for (auto& [key, cache] : registry().caches) {
    caches.push_back(cache);
    for (auto& [chain, continuation] : cache->continuations_)
      if (continuation) caches.push_back(continuation);
  }
  std::unordered_set<PyObject*> dead;
  const std::vector<ObjectRef> kept = deadGlobals(caches);
  for (const ObjectRef& globals : kept) dead.insert(globals.get());
  for (auto& cache : caches) cache->purge(dead);
  // Nor can a frame with such globals go on.
  std::vector<std::shared_ptr<CodeCache>> dying;
  std::vector<std::shared_ptr<const ResumeChain>> chains;
  for (auto& [key, cache] : registry().caches)
    for (auto it = cache->continuations_.begin(); it != cache->continuations_.end();) {
      const bool gone = std::any_of(it->first->frames.begin(), it->first->frames.end(),
                                    [&](const ResumeChain::Frame& f) { return dead.count(f.globals.get()) != 0; });
      if (gone) {
        chains.push_back(it->first);
        dying.push_back(std::move(it->second));
      }
      it = gone ? cache->continuations_.erase(it) : std::next(it);
    }
}

namespace {

// The graph has told where in the function it failed: the frame of the code that called the graph is none of the program's.
void hideOwnFrame(const Entry& entry) {
  PendingTraceback pending;
  PyTracebackObject* own = pending.first();
  if (!own || !own->tb_next || !PyFunction_Check(entry.function.get())) return;
  const bool isOwn = reinterpret_cast<PyObject*>(PendingTraceback::codeOf(own).get()) == PyFunction_GET_CODE(entry.function.get());
  // Made by hand: a function has one constant at least, its docstring or None.
  const bool toldByGraph = PyTuple_GET_SIZE(PendingTraceback::codeOf(own->tb_next)->co_consts) == 0;
  if (isOwn && toldByGraph) pending.dropFirst();
}

PyObject* runEntry(Entry& entry, PyObject** values, size_t count) {
  FrameHookPause pause;
  KeepAlive kept(values, count);
  entry.guards->releaseTemporaries();
  entry.hits++;
  if (entry.direct) {
    ObjectRef result = ObjectRef::steal(PyObject_Vectorcall(entry.graph.get(), values, count, nullptr));
    if (!result || entry.directOutput < 0) return result.release();
    PyObject* outputs = result.get();
    if (PyTuple_Check(outputs) && entry.directOutput < PyTuple_GET_SIZE(outputs))
      return ObjectRef::share(PyTuple_GET_ITEM(outputs, entry.directOutput)).release();
    return PySequence_GetItem(outputs, entry.directOutput);
  }
  Py_ssize_t graphCount = static_cast<Py_ssize_t>(entry.graphInputCount), rest = static_cast<Py_ssize_t>(count) - graphCount;
  ObjectRef inputs = ObjectRef::steal(PyTuple_New(graphCount)), objects = ObjectRef::steal(PyTuple_New(rest));
  if (!inputs || !objects) return nullptr;
  for (Py_ssize_t i = 0; i < graphCount; i++) PyTuple_SET_ITEM(inputs.get(), i, ObjectRef::share(values[i]).release());
  for (Py_ssize_t i = 0; i < rest; i++) PyTuple_SET_ITEM(objects.get(), i, ObjectRef::share(values[graphCount + i]).release());
  PyObject* args[] = {inputs.get(), objects.get()};
  PyObject* result = PyObject_Vectorcall(entry.function.get(), args, 2, nullptr);
  if (!result) hideOwnFrame(entry);
  return result;
}

// Where the graph fails and something of the program would be lost by that, the call is left to CPython: null without an error.
PyObject* runOrLeave(Entry& entry, PyObject** values, size_t count) {
  if (!entry.replay.wanted) [[likely]]
    return runEntry(entry, values, count);
  KeepAlive kept(values, count);
  BeforeGraph before(entry.replay, values);
  PyObject* result = runEntry(entry, values, count);
  if (!result && (entry.direct || isGraphFailure())) before.undo(values, entry.graphInputCount);
  return result;
}

CallOutcome outcomeOf(std::shared_ptr<Entry> entry, PyObject** values, size_t count) {
  PyObject* result = runOrLeave(*entry, values, count);
  if (entry->suspended.empty() || !result) [[likely]]
    return {result, nullptr};
  return {result, std::move(entry)};
}

}  // namespace

CallOutcome CodeCache::call(const FrameInputs& inputs, int recompileLimit) {
  FrameHookPause pause;
  PyObject* globals = reinterpret_cast<PyFunctionObject*>(inputs.function)->func_globals;
  SmallVector<PyObject*, 32> values;
  for (size_t i = 0; i < entries_.size(); i++) {
    std::shared_ptr<Entry> entry = entries_[i];
    if (entry->globals && entry->globals.get() != globals) continue;
    size_t wanted = entry->guards->wantedCount();
    values.resize(static_cast<uint32_t>(wanted));
    bool onlyDiffering = dispatchSettings().onlyDiffering;
    if (onlyDiffering ? !entry->guards->checkDiffering(inputs, differing_, values.data()) : !entry->guards->check(inputs, values.data())) continue;
    if (i > 0 && i < entries_.size() && entries_[i] == entry) {
      entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i));
      entries_.insert(entries_.begin(), entry);
    }
    return outcomeOf(std::move(entry), values.data(), wanted);
  }
  return miss(inputs, recompileLimit);
}

void CodeCache::purge(const std::unordered_set<PyObject*>& deadGlobals) {
  std::vector<std::shared_ptr<Entry>> dying;
  for (size_t i = entries_.size(); i-- > 0;)
    if (!entries_[i]->guards->canEverHold() || deadGlobals.count(entries_[i]->globals.get())) {
      dying.push_back(std::move(entries_[i]));
      entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i));
    }
  if (dying.empty()) return;
  bool used = std::any_of(dying.begin(), dying.end(), [](const auto& entry) { return entry->hits > 1; });
  wasted_ = used ? 0 : wasted_ + 1;
}

bool CodeCache::isFull(const FrameInputs& inputs, int limit) const {
  if (entries_.size() >= static_cast<size_t>(dispatchSettings().accumulatedLimit) || wasted_ >= kMostWasted * limit) return true;
  int alike = 0;
  for (const auto& entry : entries_) alike += entry->guards->isForSameObjects(inputs);
  return alike >= limit;
}

ObjectRef CodeCache::missReasons(const FrameInputs& inputs) const {
  ObjectRef reasons = checked(PyList_New(0));
  PyObject* globals = reinterpret_cast<PyFunctionObject*>(inputs.function)->func_globals;
  std::vector<std::shared_ptr<Entry>> entries = entries_;
  for (const auto& entry : entries) {
    bool otherGlobals = entry->globals && entry->globals.get() != globals;
    std::string text = otherGlobals ? "the function has other globals" : entry->guards->explainMiss(inputs);
    ObjectRef line = checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    if (entry->record && PyUnicode_Check(entry->record.get())) line = checked(PyUnicode_FromFormat("%U: %U", entry->record.get(), line.get()));
    checkedStatus(PyList_Append(reasons.get(), line.get()));
  }
  return reasons;
}

void CodeCache::noteChangedNumbers(const FrameInputs& inputs, bool canHold) {
  std::vector<std::shared_ptr<Entry>> entries = entries_;
  for (const auto& entry : entries)
    if (entry->guards->canEverHold() == canHold) entry->guards->addChangedNumbers(inputs, openNames_);
}

namespace {

// Calls a callback of the settings. False with an error set where it raised.
template <typename... Args>
bool notify(const ObjectRef& callback, Args... args) {
  if (!callback) return true;
  ObjectRef keep = callback;
  return static_cast<bool>(ObjectRef::steal(PyObject_CallFunctionObjArgs(keep.get(), args..., nullptr)));
}

bool engineFailed(PyObject* function, const std::string& what) {
  const DispatchSettings& settings = dispatchSettings();
  if (settings.strict) {
    PyErr_Format(PyExc_RuntimeError, "cdynamo: internal error: %s", what.c_str());
    return false;
  }
  if (!settings.onEngineError) return PyErr_WarnFormat(PyExc_RuntimeWarning, 2, "cdynamo: internal error, running eagerly: %s", what.c_str()) == 0;
  ObjectRef text = ObjectRef::steal(PyUnicode_DecodeUTF8(what.data(), static_cast<Py_ssize_t>(what.size()), "replace"));
  return text && notify(settings.onEngineError, function, text.get());
}

PyObject* lastOf(PyObject* reasons) {
  Py_ssize_t size = PyList_GET_SIZE(reasons);
  return size ? PyList_GET_ITEM(reasons, 0) : Py_None;
}

struct Flag {
  bool& flag;
  explicit Flag(bool& f) : flag(f) { flag = true; }
  ~Flag() { flag = false; }
};

}  // namespace

void CodeCache::overLimit(const FrameInputs& inputs, int limit, PyObject* reasons) {
  if (limitReported_) return;
  if (dispatchSettings().onLimit) {
    ObjectRef number = checked(PyLong_FromLong(limit));
    PyObject* options = options_ ? options_.get() : Py_None;
    // Said once; but a callback that raises (fullgraph) is asked again at every call.
    limitReported_ = notify(dispatchSettings().onLimit, inputs.function, number.get(), reasons, options);
    return;
  }
  limitReported_ = true;
  auto* code = reinterpret_cast<PyCodeObject*>(codeKey_);
  PyErr_WarnFormat(PyExc_RuntimeWarning, 2,
                   "cdynamo hit config.recompile_limit (%d)\n   function: '%U' (%U:%d)\n   last reason: %S\n"
                   "The function runs eagerly from now on where no earlier capture fits.",
                   limit, code->co_name, code->co_filename, code->co_firstlineno, lastOf(reasons));
}

// Null without an error set: the caller runs the original function.
CallOutcome CodeCache::miss(const FrameInputs& inputs, int recompileLimit) {
  if (skipped_ || capturing_ || runOnlyDepth() > 0 || captureHook() == nullptr) return {};
  // The front is Python code: where it would fail for the depth of the program's calls, the program goes on alone.
  if (callsLeft() < kCallsOfFront) return {};
  const DispatchSettings& settings = dispatchSettings();
  if (!entries_.empty() && !notify(settings.onMiss)) return {};
  bool delays = settings.stance == Stance::EagerThenCompile || settings.stance == Stance::AotEagerThenCompile;
  bool firstTime = delays && !std::exchange(calledBefore_, true);
  if (firstTime && settings.stance == Stance::EagerThenCompile) return {};
  int limit = recompileLimit >= 0 ? recompileLimit : settings.recompileLimit;
  try {
    if (firstTime && settings.stance == Stance::AotEagerThenCompile && settings.otherBackend) {
      ObjectRef name = checked(PyUnicode_FromString("aot_eager"));
      ObjectRef other = checked(PyObject_CallFunctionObjArgs(settings.otherBackend.get(), options_.get(), name.get(), nullptr));
      std::shared_ptr<CodeCache> cache = find(codeKey_, other.get());
      cache->calledBefore_ = true;
      return cache->call(inputs, recompileLimit);
    }
    noteChangedNumbers(inputs, false);
    purge();
    bool known = !entries_.empty();
    // As in torch, these two stances make no capture at all, not even a first one.
    if (settings.stance == Stance::EagerOnRecompile) return {};
    bool full = isFull(inputs, limit);
    if (full && limitReported_) return {};
    KeepAlive kept(inputs.locals, static_cast<size_t>(inputs.localCount));
    ObjectRef reasons = known ? missReasons(inputs) : ObjectRef();
    auto* code = reinterpret_cast<PyCodeObject*>(codeKey_);
    if (settings.stance == Stance::FailOnRecompile) {
      const char* message =
          "Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '%U', function name: '%U', line number: %d";
      ObjectRef text = checked(PyUnicode_FromFormat(message, code->co_filename, code->co_name, code->co_firstlineno));
      if (reasons) {
        ObjectRef glue = checked(PyUnicode_FromString("\n    - "));
        ObjectRef failures = checked(PyUnicode_Join(glue.get(), reasons.get()));
        text = checked(PyUnicode_FromFormat("%U\n    triggered by the following guard failure(s):\n    - %U", text.get(), failures.get()));
      }
      PyErr_SetObject(PyExc_RuntimeError, text.get());
      return {};
    }
    if (known && settings.onlyDiffering) {
      PyErr_SetString(PyExc_RuntimeError,
                      "Recompilation triggered with skip_guard_eval_unsafe stance. This usually means that you have not warmed up your model with "
                      "enough inputs such that you can guarantee no more recompilations.");
      return {};
    }
    if (full) {
      if (!reasons) reasons = checked(PyList_New(0));
      overLimit(inputs, limit, reasons.get());
      return {};
    }
    if (known && !notify(settings.onRecompile, inputs.function, reasons.get())) return {};
    noteChangedNumbers(inputs, true);
    for (const auto& entry : std::vector<std::shared_ptr<Entry>>(entries_)) entry->guards->addDiffering(inputs, differing_);
    CaptureOutcome outcome;
    uint64_t generation = generation_;
    // Tracing may import modules of the library, which change what it has read: the second attempt finds it as it stays.
    for (bool again : {false, true}) {
      {
        Flag capturing(capturing_);
        CaptureScope scope;
        outcome = captureHook()(inputs.function, inputs, options_.get(), openNames_);
      }
      if (again || outcome.kind != CaptureOutcome::Kind::Install || !outcome.entry || !outcome.entry->guards) break;
      GuardProgram& guards = *outcome.entry->guards;
      SmallVector<PyObject*, 32> values(static_cast<uint32_t>(guards.wantedCount()), nullptr);
      if (generation != generation_ || guards.check(inputs, values.data()) || !guards.canEverHold()) break;
    }
    if (outcome.kind == CaptureOutcome::Kind::Install) {
      std::unique_ptr<Entry> entry = std::move(outcome.entry);
      CD_CHECK(entry && entry->guards, "a capture to install has no entry");
      if (generation == generation_) return install(std::move(entry), inputs);
      return {};  // reset() meanwhile: nothing of before it is kept
    }
    if (outcome.kind == CaptureOutcome::Kind::Skip && outcome.remember && generation == generation_) {
      skipped_ = true;
      skipReason_ = outcome.reason;
    }
    CD_CHECK(outcome.kind != CaptureOutcome::Kind::Raise || PyErr_Occurred(), "a capture raised without an error set");
    return {};
  } catch (const PythonError&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "cdynamo: error without an exception set");
  } catch (const std::exception& error) {
    if (PyErr_Occurred()) PyErr_Clear();
    engineFailed(inputs.function, error.what());
  }
  return {};
}

CallOutcome CodeCache::install(std::unique_ptr<Entry> made, const FrameInputs& inputs) {
  std::shared_ptr<Entry> entry = std::move(made);
  entries_.insert(entries_.begin(), entry);
  SmallVector<PyObject*, 32> values(static_cast<uint32_t>(entry->guards->wantedCount()), nullptr);
  if (entry->guards->check(inputs, values.data())) return outcomeOf(std::move(entry), values.data(), values.size());
  // What only the capture itself held has died with it.
  if (!entry->guards->canEverHold()) return purge(), CallOutcome{};
  std::string why = entry->guards->explainMiss(inputs);
  for (size_t i = 0; i < entries_.size(); i++)
    if (entries_[i] == entry) {
      entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i));
      break;
    }
  skipped_ = true;
  skipReason_ = "the guards of a new capture do not hold: " + why;
  engineFailed(inputs.function, skipReason_);
  return {};
}

}  // namespace cdynamo
