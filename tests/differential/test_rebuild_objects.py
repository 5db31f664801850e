"""Exceptions, functions, descriptors, classes, containers, effects and torch contexts become real as in eager."""

import collections
import dataclasses
import enum
import functools
import gc
import itertools
import operator
import types
import weakref

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case = cases.case
scenario = cases.scenario


# ---- exceptions --------------------------------------------------------------------------------------------------------


class Plain(Exception):
    pass


class Detailed(ValueError):
    def __init__(self, code, extra):
        super().__init__(f"code {code}")
        self.code = code
        self.extra = extra


@case(lambda: (t(3),))
def exceptions_returned(x):
    out = [Plain(), Plain("a", 1), Detailed(3, x), KeyError("k"), OSError(2, "gone"), OSError(2, "gone", "file"), StopIteration(5), SystemExit(3)]
    for make in (lambda: {}["missing"], lambda: [][1], lambda: None.nothing, lambda: undefined_name, lambda: int("q"), lambda: 1 // 0):
        try:
            make()
        except Exception as error:
            out.append(error)
    return out, x + 1


@case(lambda: (t(3),))
def exception_chains(x):
    try:
        try:
            raise Plain("first")
        except Plain as error:
            raise Detailed(1, x) from error
    except Detailed as error:
        caused = error
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise Plain("second")
    except Plain as error:
        during = error
    try:
        try:
            raise Plain("first")
        except Plain:
            raise KeyError("second") from None
    except KeyError as error:
        hidden = error
    return caused, during, hidden, x + 1


@case(lambda: (t(3),))
def exception_attributes(x):
    e = Plain("a")
    e.note = x
    e.args = ("b", 2)
    e.__cause__ = KeyError("c")
    return e, x + 1


@case(lambda: (t(3),))
def exception_groups(x):
    inner = [Plain("a"), KeyError("b")]
    g = ExceptionGroup("both", inner)
    return g, g.exceptions[0] is inner[0], inner, x + 1


@case(lambda: (t(3),))
def exception_keywords(x):
    return AttributeError("m", name="n", obj=3), NameError("m", name="n"), ImportError("m", name="n", path="p"), x + 1


@case(lambda: (t(3),))
def exception_notes(x):
    e = Plain("a")
    e.add_note("first")
    e.add_note("second")
    return e, e.__notes__, x + 1


@case(lambda: (t(3),))
def exception_raised_while_handling(x):
    try:
        try:
            raise Plain("first")
        except Plain:
            {}["missing"]
    except KeyError as error:
        implicit = error
    try:
        try:
            int("a")
        except ValueError:
            {}["missing"]
    except KeyError as error:
        both_real = error
    return implicit, both_real, x + 1


@case(lambda: (t(3),))
def exception_in_a_cycle(x):
    box = []
    e = Plain(box)
    box.append(e)
    return e, box, x + 1


@case(lambda: (t(3),))
def same_exception_twice(x):
    try:
        {}["k"]
    except KeyError as error:
        kept = error
    return kept, [kept], x + 1


# ---- descriptors, functions, methods -----------------------------------------------------------------------------------


@case(lambda: (t(3),))
def descriptors(x):
    def get(self):
        return 1

    p, s, c = property(get), staticmethod(get), classmethod(get)
    return [p, s, c], p.fget is get, s.__func__ is get, get, x + 1


@scenario()
def super_objects():
    class A:
        def who(self):
            return "A"

    class B(A):
        def who(self):
            return "B"

        def up(self, x):
            return super(), x + 1

    return Setup(lambda b, x: b.up(x), lambda: (B(), t(3)), after=lambda r: r[0].who())


@case(lambda: (t(3),))
def slices(x):
    s = slice(x, None, 2)
    return s.start, [s, s][0] is s, slice(1, 2), x + 1


@scenario()
def slices_with_tensors():
    return Setup(lambda x: (slice(x, x + 1), x * 2), lambda: (t(3),), after=lambda r: (r[0].start, r[0].stop, r[0].step))


@scenario()
def dict_views():
    def f(x):
        d = {"a": x, "b": 2}
        o = collections.OrderedDict(d)
        return d, d.keys(), d.values(), d.items(), o.keys(), x + 1

    def after(r):
        r[0]["c"] = 3
        return [type(v) for v in r], [list(v) for v in r[1:5]]

    return Setup(f, lambda: (t(3),), after=after)


@scenario()
def builtin_methods():
    def f(x):
        items, d, s = [1], {"a": 1}, {1}
        return items, d, s, items.append, d.get, s.add, items.__len__, d.__getitem__, "abc".upper, dict.fromkeys, x.add, x + 1

    def after(r):
        items, d, s, append, get, add, length, item, upper, fromkeys, plus, y = r
        append(2)
        add(3)
        return items, s, get("a"), length(), item("a"), upper(), fromkeys("ab"), plus(1), [type(v) for v in r]

    return Setup(f, lambda: (t(3),), after=after)


@scenario()
def partials():
    def f(x):
        def g(*a, **k):
            return a, k

        p = functools.partial(g, x, 1, k=2)
        p.note = "attribute"
        q = functools.partial(p, 3, other=x)
        return p, q, x + 1

    def after(r):
        return r[0](5), r[1](6), r[0].note, r[0].args, r[1].args, r[0].keywords, r[1].keywords, type(r[0]) is functools.partial

    return Setup(f, lambda: (t(3),), after=after)


@case(lambda: (t(3),))
def functions(x):
    def plain(a: int, b: "str" = x, *, k: float = 2, m=x) -> list:
        """A doc."""
        return a

    plain.attribute = [x]

    def renamed():
        pass

    renamed.__name__ = "other"
    renamed.__qualname__ = "some.other"
    renamed.__doc__ = "new doc"
    renamed.__module__ = "elsewhere"

    @functools.wraps(plain)
    def wrapper(*args):
        return plain(*args)

    return plain, renamed, wrapper, x + 1


@case(lambda: (t(3),))
def annotations_read_then_kept(x):
    def f(a: int) -> str:
        return a

    notes = f.__annotations__
    notes["more"] = x
    return f, notes, x + 1


@case(lambda: (t(3),))
def cells_shared(x):
    n = 1

    def inc():
        nonlocal n
        n += 1
        return n

    def get():
        return n

    inc()
    return inc, get, n, x + 1


@case(lambda: (t(3),))
def functions_that_hold_each_other(x):
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    def late(default=[even]):
        return default

    return even, odd, late, x + 1


# ---- classes and structures --------------------------------------------------------------------------------------------


Point = collections.namedtuple("Point", "a b")


@dataclasses.dataclass
class Data:
    a: object
    b: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: int = 3


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: int = 3


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Node:
    def __init__(self, value):
        self.value = value
        self.next = None


class Guarded:
    __slots__ = ("a", "b", "__dict__")

    def __setattr__(self, name, value):
        object.__setattr__(self, name, ("set", value))


class MyTuple(tuple):
    pass


@case(lambda: (t(3),))
def classes(x):
    d, s, g = Data(x), Slotted(x, 4), Guarded()
    g.a = x
    g.c = 3
    del s.b
    return Point(x, [1]), d, Frozen(x), s, g, Colour.RED, [Colour.BLUE], x + 1


@case(lambda: (t(3),))
def list_in_itself(x):
    items = [x]
    items.append(items)
    return items, x + 1


@case(lambda: (t(3),))
def tuple_in_itself(x):
    items = [x]
    pair = (items, 1)
    items.append(pair)
    return pair, x + 1


@case(lambda: (t(3),))
def subclass_of_tuple_in_itself(x):
    items = []
    pair = MyTuple((items, x))
    items.append(pair)
    pair.back = pair
    p = Point(items, 2)
    items.append(p)
    return p, pair, x + 1


@case(lambda: (t(3),))
def dict_and_object_cycles(x):
    a, b = Node(x), Node({})
    a.next, b.next = b, a
    b.value["a"] = a
    b.value["self"] = b.value
    d = collections.defaultdict(list)
    d["d"].append(d)
    o = collections.OrderedDict()
    o["o"] = o
    return (a, [b]), d, o, x + 1


@case(lambda: (t(3),))
def cyclic_deque(x):
    d = collections.deque([1], maxlen=4)
    d.append(d)
    d.appendleft(x)
    return (d,), x + 1


@case(lambda: (t(3),))
def deep_lists(x):
    items = [x]
    for _ in range(3000):
        items = [items]
    depth, inner = 0, items
    while isinstance(inner[0], list):
        inner, depth = inner[0], depth + 1
    return [items, 1][1], depth, x + 1


@scenario()
def deep_lists_returned():
    def f(x):
        items = [x]
        for _ in range(3000):
            items = [items, 1]
        return items, x + 1

    def after(r):
        depth, items = 0, r[0]
        while len(items) == 2:
            items, depth = items[0], depth + 1
        r[0].clear()
        return depth, items

    return Setup(f, lambda: (t(3),), after=after, watch=lambda: None)


@case(lambda: (t(3),), skip="Unreconstructable")
def deep_tuples_refused(x):
    p = (x,)
    for _ in range(3000):
        p = (p,)
    return Holder(p), x + 1


class Holder:
    def __init__(self, value):
        self.value = value

    @property
    def __dict__(self):
        return {}


@case(lambda: (t(3),))
def collections_kept(x):
    o = collections.OrderedDict(a=1, b=x, c=3)
    o.move_to_end("a")
    o.move_to_end("c", last=False)
    d = collections.defaultdict(list, k=[1])
    d["new"].append(x)
    c = collections.Counter("abca")
    c["z"] += 2
    q = collections.deque([1, 2, 3], maxlen=2)
    q.append(x)
    m = collections.ChainMap({"a": 1}, {"b": x})
    return o, d, c, q, m["b"], x + 1


@scenario()
def set_orders():
    def f(x):
        s = {"a", "b", "c", "d"}
        s.add("e")
        u = set(range(0, 100, 7))
        u.discard(14)
        u.add(1000)
        return s, u, frozenset([5, 3, 100]), x + 1

    return Setup(f, lambda: (t(3),), after=lambda r: [list(s) for s in r[:3]])


@case(lambda: (t(3), t(3)))
def tensors_kept(x, y):
    z = x + y
    z.tag = [z, 1]
    v = z.view(3)
    w = x.view(1, 3)
    return x, z, v, w, [x, y][1], z


# ---- effects -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), collections.deque([1, 2, 3], maxlen=4), {1, 2}, collections.OrderedDict(a=1, b=2, c=3), collections.Counter("aab")))
def containers_changed(x, q, s, o, c):
    q.append(x)
    q.appendleft(0)
    q.rotate(1)
    s.add(7)
    s.discard(1)
    o.move_to_end("a")
    o["d"] = x
    c["z"] += 1
    del c["a"]
    return x + 1


@case(lambda: (t(3), collections.deque([1, 2, 3])))
def deque_only_appended(x, q):
    q.append(x + 1)
    return x * 2


@scenario()
def set_order_after_changes():
    def f(x, s):
        s.add(100)
        s.discard(3)
        s.add(50)
        return x + 1

    kept = []

    def args():
        kept[:] = [set(range(8))]
        return (t(3), kept[0])

    return Setup(f, args, watch=lambda: list(kept[0]))


@case(lambda: (t(3), Slotted(1), Data(1), Plain("p"), types.ModuleType("made")), captures=(1,))
def objects_changed(x, s, d, e, m):
    s.a = x + 1
    del s.b
    d.new = [x]
    del d.b
    e.extra = x
    m.value = x
    return x + 1


@scenario(captures=(1,))
def function_attributes_changed():
    def g():
        pass

    g.gone = 1

    def f(x):
        g.calls = getattr(g, "calls", 0) + 1
        del g.gone
        g.gone = x
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: g.__dict__)


@scenario(captures=(1,))
def module_globals_changed():
    module = types.ModuleType("module_of_the_test")
    module.n = 0

    def f(x):
        module.n += 1
        module.last = x + 1
        return x + module.n

    return Setup(f, lambda: (t(3),), watch=lambda: module.__dict__.get("last"))


# ---- torch's contexts --------------------------------------------------------------------------------------------------


def leaving(manager):
    def f(x):
        c = manager()
        c.__enter__()
        return c, torch.mm(x, x)

    def after(r):
        inside = torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.mm(r[1].float(), r[1].float())
        r[0].__exit__(None, None, None)
        return inside, torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    return Setup(f, lambda: (t(3, 3),), after=after)


@scenario()
def autocast_entered():
    return leaving(lambda: torch.autocast("cpu", dtype=torch.bfloat16))


@scenario()
def inference_mode_entered():
    return leaving(lambda: torch.inference_mode())


@scenario()
def no_grad_entered():
    return leaving(lambda: torch.no_grad())


@scenario()
def enable_grad_entered_in_no_grad():
    def f(x):
        a, b = torch.no_grad(), torch.enable_grad()
        a.__enter__()
        b.__enter__()
        return a, b, x * 2

    def after(r):
        seen = [torch.is_grad_enabled()]
        r[1].__exit__(None, None, None)
        seen.append(torch.is_grad_enabled())
        r[0].__exit__(None, None, None)
        return seen, torch.is_grad_enabled()

    return Setup(f, lambda: (t(3, grad=True),), after=after)


test_rebuild_objects = cases.as_test(__name__)
