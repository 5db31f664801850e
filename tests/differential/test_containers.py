"""list, tuple, dict, set and their relatives: reads, writes, identity, methods."""

import collections
import copy
import dataclasses
import enum
from collections import OrderedDict, defaultdict, namedtuple
from typing import NamedTuple

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario

Point = namedtuple("Point", "a b")


class Typed(NamedTuple):
    x: torch.Tensor
    k: int = 3

    def scaled(self):
        return self.x * self.k


@dataclasses.dataclass
class Data:
    x: torch.Tensor
    k: int = 2
    items: list = dataclasses.field(default_factory=list)

    def total(self):
        return self.x * self.k + len(self.items)


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int
    name: str = "n"


class Output(OrderedDict):
    """As transformers' ModelOutput: a dict whose items are attributes too."""

    def __init__(self, **kw):
        super().__init__()
        for k, v in kw.items():
            if v is not None:
                self[k] = v

    def __getitem__(self, k):
        if isinstance(k, str):
            return dict(self.items())[k]
        return self.to_tuple()[k]

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


class MyList(list):
    def total(self):
        return sum(self)


class MyDict(dict):
    def __missing__(self, key):
        return key * 2


class Color(enum.Enum):
    RED = 1
    BLUE = 2


# ---- lists ----


@case(lambda: (t(3), [1, 2]))
def list_methods(x, items):
    a = [3, 1, 2]
    e = a.count(1)
    a.append(x)
    a.insert(1, 5)
    a.extend([7, 8])
    b = a.pop()
    c = a.pop(0)
    a.remove(5)
    d = a.index(2)
    a.reverse()
    f = a.copy()
    f.clear()
    return a, b, c, d, e, f, x + 1


@case(lambda: (t(3), [1, 2]))
def list_argument_mutated(x, items):
    items.append(x * 2)
    items[0] = "new"
    return x + len(items)


@case(lambda: (t(3), [3, 1, 2]))
def list_sorted_in_place(x, items):
    items.sort(reverse=True)
    items += [9]
    items *= 2
    return x * items[0], items


@case(lambda: (t(3), [0, 1, 2, 3, 4, 5]))
def list_slices(x, items):
    a = items[1:4]
    b = items[::-2]
    items[1:3] = [x]
    del items[-1]
    return a, b, items[-2:], x + 1


@case(lambda: (t(3), [0, 1, 2, 3, 4, 5]))
def list_slice_step_assign_and_delete(x, items):
    items[::2] = [9, 9, 9]
    del items[1:3]
    return x + items[0]


@case(lambda: (t(3), [[1], [2]]))
def list_aliasing(x, items):
    a = items[0]
    items[1] = a
    a.append(x + 1)
    return items


@case(lambda: (t(3),))
def list_repeat_keeps_identity(x):
    row = [x]
    grid = [row] * 3
    row.append(1)
    return grid, x + 1


@case(lambda: (t(3),))
def list_contains_itself(x):
    a = [x + 1]
    a.append(a)
    return a


@case(lambda: (t(3), [1, 2, 3]))
def list_compare(x, items):
    return x + 1, items == [1, 2, 3], items < [1, 3], [1] != items, items + [4], 2 in items, 9 not in items


@case(lambda: (t(3), [1]))
def list_errors(x, items):
    said = []
    for f in (lambda: items[5], lambda: items.pop(7), lambda: items.remove(9), lambda: items.index(3), lambda: [].pop(), lambda: items["a"]):
        try:
            f()
        except Exception as error:
            said.append((type(error).__name__, str(error)))
    return x + 1, said


@case(lambda: (t(3),))
def list_of_tensors_in_membership_by_identity(x):
    items = [x, x + 1]
    return any(i is x for i in items), x * 2


@case(lambda: (t(3),))
def list_changed_while_iterated(x):
    items = [1, 2, 3]
    seen = []
    for i in items:
        seen.append(i)
        if i == 1:
            items.append(4)
    return seen, x + 1


@case(lambda: (MyList([1, 2]), t(3)))
def list_subclass(items, x):
    items.append(3)
    made = MyList([4, 5])
    return x * items.total(), made.total(), made, type(made).__name__


# ---- tuples ----


@case(lambda: (t(3), (1, (2, 3))))
def tuples(x, pair):
    a, (b, c) = pair
    return pair + (x,), pair[1], pair * 2, (x, a + b + c), pair[::-1], x + 1, hash((1, 2)) == hash((1, 2)), (1, 2) < (1, 3)


@case(lambda: (Point(t(3), 2),))
def namedtuple_argument(p):
    q = p._replace(b=5)
    return p.a * p.b, q, Point(1, b=p.a), p._fields, p._asdict(), p[0] is p.a, isinstance(p, tuple), Point._make([1, 2])


@case(lambda: (Typed(t(3)),))
def typed_namedtuple(p):
    return p.scaled(), Typed(p.x + 1, k=4).scaled(), Typed(p.x), p == p


@case(lambda: (t(2, 3),))
def size_is_a_tuple(x):
    s = x.shape
    return s, s[0], s[1:], s + (1,), tuple(s), s.numel(), x.reshape(s[::-1]), isinstance(s, torch.Size), list(s), len(s), torch.Size([1, 2])


@case(lambda: (t(4, 4),))
def struct_sequences(x):
    m = x.max(dim=1)
    v, i = x.topk(2)
    return m, m.values, m.indices, v, i, torch.sort(x).values, isinstance(m, tuple), m[0] is m.values


# ---- dicts ----


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_methods(x, d):
    e = dict(d, c=3)
    e.update(d=4)
    e.update({"e": 5}, f=6)
    e.update([("g", 7)])
    got = e.get("a"), e.get("zz"), e.get("zz", 0)
    popped = e.pop("a"), e.pop("nope", None)
    last = e.popitem()
    s = e.setdefault("s", []), e.setdefault("s", 1)
    return x + 1, e, got, popped, last, s, list(e), list(e.keys()), list(e.values()), list(e.items()), "b" in e, len(e)


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_argument_mutated(x, d):
    d["c"] = x * 2
    del d["a"]
    d["b"] += 1
    return x + d["b"]


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_delete_and_reinsert_moves_to_end(x, d):
    v = d.pop("a")
    d["a"] = v
    return x + v, list(d)


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_insert_then_iterate(x, d):
    d["c"] = 3
    return x + 1, [(k, v) for k, v in d.items()], list(reversed(d))


@case(lambda: (t(3), {"a": 1}))
def dict_clear(x, d):
    d.clear()
    d["z"] = x
    return x + len(d)


@case(lambda: (t(3), {1: "a", (1, 2): "b", None: "c", 2.5: "d", True: "e"}))
def dict_keys_of_many_types(x, d):
    return d[1], d[1, 2], d[None], d[2.5], d[1.0], x + 1


@case(lambda: (t(3), {"a": 1}))
def dict_errors(x, d):
    said = []
    for f in (lambda: d["q"], lambda: d.pop("q"), lambda: {}.popitem(), lambda: d[[]], lambda: d.__getitem__("q")):
        try:
            f()
        except Exception as error:
            said.append((type(error).__name__, error.args))
    return x + 1, said


@case(lambda: (t(3), {"a": 1}, {"a": 2, "b": 3}))
def dict_operators(x, a, b):
    c = a | b
    a |= {"z": 0}
    return x + 1, c, a, a == {"a": 1, "z": 0}, {**a, **b}, a.keys() & b.keys(), a.keys() - b.keys(), a.keys() == {"a", "z"}


@case(lambda: (t(3),))
def dict_fromkeys_and_comprehension(x):
    return dict.fromkeys(["a", "b"], 0), {k: x * i for i, k in enumerate("ab")}, dict(zip("ab", [1, 2]))


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_view_kept(x, d):
    keys = d.keys()
    d["c"] = 3
    return list(keys), len(keys), "c" in keys, x + 1


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_changed_while_iterated(x, d):
    try:
        for k in d:
            d[k + "x"] = 1
    except RuntimeError as error:
        return x + 1, str(error)


@case(lambda: (t(3), {"w": {"b": [t(3, seed=1)]}}))
def nested_containers(x, tree):
    y = tree["w"]["b"][0] * x
    tree["w"]["b"].append(y)
    tree["w"]["new"] = {"y": y}
    return y


@case(lambda: (t(3),))
def tensor_keys(x):
    y = x + 1
    d = {x: 1, y: 2}
    return d[x], d[y], len(d), y


@case(lambda: (t(3), OrderedDict(a=1, b=2)))
def ordered_dict(x, d):
    d["c"] = 3
    d.move_to_end("a")
    d.move_to_end("c", last=False)
    e = OrderedDict([("q", x)])
    e["r"] = 1
    return x + d["a"], list(d), d.popitem(last=False), d, e


@case(lambda: (t(3), defaultdict(list, {"a": [1]})))
def default_dict(x, d):
    d["b"].append(x + 1)
    d["a"].append(2)
    e = defaultdict(lambda: 5)
    return x * e["q"], dict(e), d.get("zz"), "zz" in d, d.default_factory


@case(lambda: (t(3),))
def counter(x):
    c = collections.Counter("hello")
    return x * c["l"], c["zz"]


@case(lambda: (t(3), collections.deque([1, 2, 3])))
def deque_argument(x, d):
    return x * d[0], list(d), len(d)


@case(lambda: (t(3),))
def deque_made(x):
    d = collections.deque([1, 2], maxlen=3)
    d.append(x)
    d.appendleft(0)
    return d, d.popleft(), d.pop(), x + 1


@case(lambda: (t(3), MyDict(a=1)))
def dict_subclass_missing(x, d):
    return x + d["a"], d["q"], d.get("r"), "q" in d


@case(lambda: (t(3),))
def model_output(x):
    out = Output(loss=None, logits=x * 2, hidden=x + 1)
    out.hidden = x + 3
    out["extra"] = 1
    return out, out.logits, out[0], out["hidden"], len(out), list(out.keys()), "loss" in out


@case(lambda: (Output(logits=t(3)),))
def model_output_argument(out):
    out["more"] = out.logits + 1
    return out[0] * 2, out.to_tuple()


# ---- sets ----


@case(lambda: (t(3), {1, 2}))
def set_methods(x, s):
    u = {3, *s}
    u.add(4)
    u.discard(9)
    u.remove(1)
    u.update([5, 6])
    return (
        x * len(u),
        u,
        u | s,
        u & s,
        u - s,
        u ^ s,
        s <= u,
        {1, 2} == s,
        2 in s,
        frozenset([1, 2]),
        set("ab"),
        u.isdisjoint({77}),
        s.issubset([1, 2, 3]),
        s.union([8]),
    )


@case(lambda: (t(3), {1, 2}))
def set_argument_mutated(x, s):
    s.add(7)
    s.discard(1)
    return x + len(s)


@case(lambda: (t(3),))
def set_errors(x):
    said = []
    for f in (lambda: {1}.remove(2), lambda: set().pop(), lambda: {[]}, lambda: set([{}])):
        try:
            f()
        except Exception as error:
            said.append((type(error).__name__, error.args))
    return x + 1, said


@case(lambda: (t(3),))
def set_of_tensors(x):
    s = {x, x, x + 1}
    return len(s), x in s, x * 2


# ---- dataclasses, enums ----


@case(lambda: (Data(t(3)),))
def dataclass_argument(d):
    d.items.append(1)
    d.k += 1
    return d.total(), d


@case(lambda: (t(3),))
def dataclass_made(x):
    d = Data(x, k=4)
    e = dataclasses.replace(d, k=5)
    return d, e.total(), d.items is e.items, dataclasses.fields(d)[0].name


@case(lambda: (t(3), Frozen(4)))
def dataclass_frozen(x, f):
    try:
        f.k = 3
    except dataclasses.FrozenInstanceError as error:
        return x * f.k, f == Frozen(4), str(error)


@case(lambda: (t(3), Frozen(4)))
def dataclass_frozen_made(x, f):
    g = Frozen(2, name="q")
    return x * g.k, g, g.name


@case(lambda: (t(3),))
def dataclass_asdict(x):
    return dataclasses.asdict(Frozen(4)), dataclasses.astuple(Frozen(5)), x + 1


@case(lambda: (t(3), Color.RED))
def enums(x, c):
    return x + c.value, c is Color.RED, c == Color.BLUE, c.name, Color(2), Color["RED"], {Color.RED: 1}[c], [m.name for m in Color]


@scenario(after_change=(1,))
def enum_changed():
    box = {"c": Color.RED}

    def f(x, c):
        return x + 1 if c is Color.RED else x - 1

    return Setup(f, lambda: (t(3), box["c"]), changes=[lambda: box.update(c=Color.BLUE)])


@case(lambda: ([t(3), {"a": (1, [2])}],))
def copies(items):
    shallow = copy.copy(items)
    again = list(items)
    sliced = items[:]
    return shallow, again, sliced, items[0] + 1


@case(lambda: (t(3), {"a": 1}))
def dict_copy(x, d):
    e = d.copy()
    f = copy.copy(d)
    e["b"] = 2
    return e, f, x + 1


@case(lambda: (t(3), (i for i in [1])))
def generator_argument(x, g):
    return x + 1, list(g)


test_containers = cases.as_test(__name__)
