"""Patterns, walrus, star expressions, comprehensions, texts, slices, del, assert, imports, globals."""

import dataclasses
import enum
import importlib
import os
import sys
import types

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- patterns ----


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


@dataclasses.dataclass
class Circle:
    center: object
    radius: float = 1.0


class NoArgs:
    pass


class BadArgs:
    __match_args__ = "x"
    x = 1


class Twice:
    __match_args__ = ("x", "x")
    x = 1


class Limits:
    LOW = 1
    HIGH = 10


def kind_of(v):
    match v:
        case None:
            return "none"
        case True | False:
            return "bool"
        case Limits.LOW:
            return "low"
        case int(n) if n > 100:
            return f"big {n}"
        case int():
            return "int"
        case -1.5 | 2.5:
            return "float literal"
        case float() as f:
            return f"float {f}"
        case 1 + 2j:
            return "complex"
        case "a" | "b" as letter:
            return f"letter {letter}"
        case str(s):
            return f"str {s}"
        case b"bytes":
            return "bytes"
        case []:
            return "empty"
        case [1, 2, *rest] if len(rest) > 1:
            return f"12 and {rest}"
        case [first, *_, last]:
            return f"{first}..{last}"
        case [only]:
            return f"only {only}"
        case {"type": "point", "at": [x, y], **rest}:
            return f"point {x} {y} {sorted(rest)}"
        case {"k": None}:
            return "k is none"
        case {1: _, 2: _}:
            return "one two"
        case {}:
            return "mapping"
        case Color.RED:
            return "red"
        case Color():
            return "color"
        case Point(0, 0):
            return "origin"
        case Point(x=0, y=y):
            return f"on y {y}"
        case Point(x, y) | Circle(Point(x, y)):
            return f"at {x} {y}"
        case Circle(radius=r, center=c):
            return f"circle {r} {c}"
        case (set() | frozenset()) as s:
            return f"set {len(s)}"
        case _:
            return "other"


@case(lambda: (t(3),))
def all_patterns(x):
    subjects = [
        None, True, 1, 101, 5, -1.5, 2.5, 3.25, 1 + 2j, 2j, "a", "b", "xyz", b"bytes", b"no", [], (), [1, 2, 3, 4], (1, 2), [7], (8, 9, 10),
        range(3), {"type": "point", "at": [1, 2], "z": 3, "w": 4}, {"k": None}, {1: 2, 2: 3}, {}, Color.RED, Color.BLUE, Point(0, 0),
        Point(0, 5), Point(3, 4), Circle(Point(1, 1)), Circle(3, 2.0), {1, 2}, frozenset(), NoArgs(), object, torch.float32,
    ]  # fmt: skip
    return x + 1, [kind_of(s) for s in subjects]


@case(lambda: (t(3), {"a": [1, {"b": (2, 3)}], "c": "s"}))
def nested_patterns_on_inputs(x, data):
    match data:
        case {"a": [n, {"b": (p, q)}], **rest}:
            return x * n + p - q, rest
    return x


@case(lambda: (t(3), t(2, 2)))
def tensors_in_patterns(x, y):
    out = []
    for v in (x, y, [x, y], {"w": x}, (x, 1)):
        match v:
            case torch.Tensor(shape=(3,)):
                out.append("three")
            case torch.Tensor() as m if m.dim() == 2:
                out.append(m.shape)
            case [torch.Tensor() as a, torch.Tensor()]:
                out.append(a * 2)
            case {"w": w}:
                out.append(w + 1)
            case (_, int(n)):
                out.append(n)
    return out


@case(lambda: (t(3),))
def pattern_errors(x):
    out = []
    for subject, n in ((NoArgs(), 0), (BadArgs(), 1), (Twice(), 2), (Point(1, 2), 3), (5, 4)):
        try:
            match subject:
                case NoArgs(_) if n == 0:
                    out.append("no")
                case BadArgs(_):
                    out.append("no")
                case Twice(_, _):
                    out.append("no")
                case Point(_, _, _):
                    out.append("no")
                case int(_, _):
                    out.append("no")
        except TypeError as error:
            out.append(error.args)
    return x + 1, out


@case(lambda: (t(3),))
def captures_of_failed_patterns(x):
    match [1, 2, 3]:
        case [a, b]:
            pass
        case [a, 9, c]:
            pass
        case [a, *b]:
            pass
    match {"k": [1, 2]}:
        case {"k": [p, 3]}:
            pass
        case {"k": q}:
            pass
    return x + 1, a, b, p, q


# ---- walrus, stars, comprehensions ----


@case(lambda: (t(3), [1, 2, 3, 4]))
def walrus_forms(x, items):
    if (n := len(items)) > 3 and (last := items[-1]):
        x = x + n * last
    big = [y for i in items if (y := i * 2) > 4]
    total = 0
    partial = [total := total + i for i in items]
    while (k := n) > 2:
        n -= 1
    return x, big, y, partial, total, k, (lambda: (z := 5) + z)(), f"{(w := 3)}{w}"


@case(lambda: (t(3), [1, 2, 3, 4]))
def star_expressions(x, items):
    first, *rest = items
    *start, last = items
    a, *mid, z = range(5)
    (p, *q), r = [1, 2, 3], 4
    head, *nothing = [0]
    both = [*items, *rest, 9, *"ab"]
    pair = *items, 5
    s = {*items, *rest}
    d = {**{"a": 1}, "b": 2, **{"a": 3}}
    for i, *more in [(1, 2, 3), (4,)]:
        both.append((i, more))
    return x + 1, first, rest, start, last, a, mid, z, p, q, r, head, nothing, both, pair, sorted(s), d


@case(lambda: (t(3),))
def unpacking_errors(x):
    out = []
    for how in range(6):
        try:
            if how == 0:
                a, b = [1]
            elif how == 1:
                a, b = (1, 2, 3)
            elif how == 2:
                a, *b, c = [1]
            elif how == 3:
                a, b = 5
            elif how == 4:
                a, b = {1}
            else:
                [*3]  # noqa: B018
        except (TypeError, ValueError) as error:
            out.append((type(error).__name__, error.args))
    return x + 1, out


@case(lambda: (t(3), [[1, 2], [3]]))
def comprehension_forms(x, rows):
    flat = [v for row in rows for v in row if v != 2]
    nested = [[v * 2 for v in row] for row in rows]
    table = {k: {v: k * v for v in range(2)} for k in range(2)}
    sets = {v % 2 for row in rows for v in row}
    lazily = sum(v for row in rows for v in row)
    cond = [a if a else b for a, b in zip([0, 1], [2, 3], strict=True)]
    tensors = [x * v for v in flat]
    scoped = [rows for rows in range(2)]
    swapped = {v: k for k, v in {"a": 1}.items()}
    unpacked = [a + b for (a, b), c in [((1, 2), 3)] if c]
    many = [(a, b, c) for a in range(2) for b in range(a) for c in (a, b) if c]
    return flat, nested, table, sets, lazily, cond, tensors, scoped, rows, swapped, unpacked, many


@case(lambda: (t(3),))
def comprehension_with_exception(x):
    log = []

    def check(i):
        log.append(i)
        if i == 2:
            raise ValueError(i)
        return i

    try:
        [check(i) for i in range(4)]
    except ValueError as error:
        log.append(error.args)
    try:
        {check(i): [1][i] for i in range(2)}  # noqa: B018
    except IndexError as error:
        log.append(error.args)
    return x + 1, log


@case(lambda: (t(3),), graphs=0)
def dict_and_set_displays(x):
    k = "k"
    d = {k: 1, "l": x, **{k: 2}}
    d2 = {i: i for i in range(20)}
    return d, d2, {1, 2, 2, 3}, {True: "a", 1: "b"}, {(1, 2): [x]}


# ---- texts ----


@case(lambda: (t(3), 3.14159, "text", 42))
def fstring_forms(x, f, s, n):
    w, p = 10, 3
    return (
        x + 1,
        f"{f:.2f}|{f:{w}.{p}f}|{f:>{w}}|{s!r:>8}|{s!s}|{s!a}|{n:05d}|{n:#x}|{n:+,}|{n!r}|{{}}",
        f"{n=}|{f=:.1f}|{s=!s}|{n + 1=}",
        f"{'nested ' + f'{n:{len(s)}}'}",
        f"{x.shape}|{x.dtype}|{tuple(x.shape)!r:<10}|",
        f"{[n, s]!r}|{ {'a': n}['a'] }|{None}|{True:d}|{1 + 2j}",
        f"{s:*^{w}}{s[0]}{s.upper()}",
        f"{Color.RED}{Color.RED!r}{n:c}{0.5:%}{12345.678:,.1f}{1e10:g}",
    )


@case(lambda: (t(3), 3.14159, "text", 42))
def percent_and_format(x, f, s, n):
    return (
        x + 1,
        "%s %r %d %5.2f %x %o %e %c %%" % (s, s, n, f, n, n, f, "c"),
        "%(a)s-%(b)03d" % {"a": s, "b": n},
        "%s" % s,
        "%s %s" % ((1, 2), [3]),
        "{} {!r} {0}".replace("{0}", "").format(s, n),
        "{0} {1:>5} {0!r} {k:{w}} {l[0]} {o.real}".format(s, n, k=f, w=10, l=[7], o=n),
        "{:{}}|{:{}.{}}".format(n, 5, f, 8, 3),
        format(f, ".1e"),
        "%-5d|%+d|% d" % (n, n, n),
        "{a} {b}".format_map({"a": 1, "b": 2}),
        b"%d %s" % (n, b"x"),
    )


@case(lambda: (t(3),))
def text_errors(x):
    out = []
    for make in (
        lambda: "%d" % "a",
        lambda: "%s %s" % (1,),  # noqa: F507
        lambda: "%s" % (1, 2),  # noqa: F507
        lambda: "{} {}".format(1),  # noqa: F524
        lambda: "{k}".format(),  # noqa: F524
        lambda: f"{1:zz}",
        lambda: f"{'a':d}",
        lambda: "%(a)s" % {},  # noqa: F505
        lambda: format(1, 2),
        lambda: f"{[]:5}",
    ):
        try:
            make()
        except (TypeError, ValueError, IndexError, KeyError) as error:
            out.append((type(error).__name__, error.args))
    return x + 1, out


# ---- slices and del ----


@case(lambda: (t(4, 5), [1, 2, 3, 4, 5, 6]))
def slicing_forms(x, items):
    s = slice(1, 4, 2)
    text = "abcdef"
    return (
        x[1:3], x[:, ::2], x[..., -1], x[None, 1], x[-1, 1:], x[s], x[1:3, [0, 2]],
        items[::2], items[::-1], items[-3:], items[s], items[10:], items[:-10], items[4:1:-1],
        text[1:], text[::-1], text[s], (1, 2, 3)[1:], range(10)[2:8:3], b"abc"[1:],
        s.start, s.stop, s.step, s.indices(3), s == slice(1, 4, 2), slice(None), s,
    )  # fmt: skip


@case(lambda: (t(3), [1, 2, 3, 4, 5, 6]), graphs=0)
def slice_assignment(x, items):
    mine = list(range(8))
    mine[1:3] = "abc"
    mine[::2] = [0] * len(mine[::2])
    mine[5:5] = (9, 9)
    mine[:0] = [x]
    del mine[1:3]
    del mine[::3]
    items[1:2] = [7, 8, 9]
    items[-1:] = []
    out = []
    for bad in (lambda: mine.__setitem__(slice(0, 4, 2), [1]), lambda: mine.__setitem__(slice(0, 1), 5)):
        try:
            bad()
        except (ValueError, TypeError) as error:
            out.append((type(error).__name__, error.args))
    return mine, items, out


@case(lambda: (t(3), [1, 2, 3], {"a": 1, "b": 2}))
def del_forms(x, items, d):
    a, b = 1, 2
    del a, b
    del items[0], d["a"]
    p = Point(1, 2)
    del p.x
    nested = [[1, 2], [3]]
    del nested[0][1], (nested[1])
    out = []
    for bad in (lambda: d.__delitem__("zz"), lambda: items.__delitem__(9), lambda: delattr(p, "x")):
        try:
            bad()
        except (KeyError, IndexError, AttributeError) as error:
            out.append((type(error).__name__, error.args))
    try:
        a  # noqa: B018
    except NameError as error:
        out.append(error.args)
    return x + 1, items, d, nested, out


@case(lambda: (t(3), [1, 2]))
def augmented_assignment(x, items):
    same = items
    items += [3]
    n = 5
    n **= 2
    n //= 3
    n %= 5
    n <<= 2
    n |= 1
    n ^= 3
    n &= 7
    n >>= 1
    p = Point(1, [0])
    p.x += 1
    p.y[0] -= 4
    s = "a"
    s *= 3
    d = {"k": 1}
    d |= {"l": 2}
    t1 = (1,)
    t1 += (2,)
    try:
        t1[0] += 1
    except TypeError as error:
        bad = error.args
    return x + 1, same is items, items, n, p.x, p.y, s, d, t1, bad


# ---- assert ----


@case(lambda: (t(3), 3))
def assert_forms(x, n):
    out = []
    assert n == 3, "not evaluated: " + str(1 / 0)
    assert x.shape[0] == 3
    for i in range(3):
        try:
            if i == 0:
                assert n == 4
            elif i == 1:
                assert n == 4, f"n is {n}"
            else:
                assert not (n, "tuple"), (n, [n])
        except AssertionError as error:
            out.append(error.args)
    return x + 1, out


@case(lambda: (t(3), 3))
def failing_assert_leaves(x, n):
    y = x + 1
    assert n == 4, f"n is {n}"
    return y


@case(lambda: (t(3),), skip="*")
def assert_on_tensor_value(x):
    y = x + 1
    assert y.sum() > 0
    assert (y > 0).all(), "all positive"
    return y * 2


@scenario(skip="*")
def failing_assert_on_tensor_value():
    # pytest rewrites asserts of this file
    space = {}
    exec("# Python 3.11\ndef f(x):\n    y = x + 1\n    assert y.sum() < 0, f'sum of {y.shape}'\n    return y * 2", space)
    return Setup(space["f"], lambda: (t(3),))


# ---- imports ----


@case(lambda: (t(3),))
def import_forms(x):
    import collections.abc
    import math as m
    import os.path
    from collections import OrderedDict as OD
    from os import path, sep

    import torch.nn.functional as F
    from torch import nn

    return F.relu(x - 0.5) * m.pi, OD, path is os.path, sep, nn.Linear, collections.abc.Mapping


@case(lambda: (t(3),))
def import_functions(x):
    a = importlib.import_module("math")
    b = __import__("math")
    c = importlib.import_module("os.path")
    d = __import__("os.path")
    e = __import__("os.path", fromlist=["join"])
    f = importlib.import_module(".abc", "collections")
    return x * a.pi, a is b, c is os.path, d is os, e is c, f.__name__


@case(lambda: (t(3),))
def import_errors(x):
    out = []
    for how in range(6):
        try:
            if how == 0:
                import no_such_module_here  # noqa: F401
            elif how == 1:
                from math import no_such_name  # noqa: F401
            elif how == 2:
                import math.nothing  # noqa: F401
            elif how == 3:
                importlib.import_module("no_such_module_here")
            elif how == 4:
                from os.path import nothing_here  # noqa: F401
            else:
                from . import beside  # noqa: F401
        except ImportError as error:
            out.append((type(error).__name__, error.args, error.name, error.path))
    return x + 1, out


def relative(package):
    """A function in a package of its own that imports by relative names."""
    inner = types.ModuleType(f"{package}.inner")
    inner.__package__ = package
    outer = types.ModuleType(package)
    outer.__path__ = []
    sibling = types.ModuleType(f"{package}.sibling")
    sibling.SCALE = 3
    outer.sibling = sibling
    sys.modules.update({package: outer, inner.__name__: inner, sibling.__name__: sibling})
    source = "def f(x):\n    from . import sibling\n    from .sibling import SCALE as s\n    return x * s, sibling.SCALE\n"
    exec(compile(source, f"{package}/inner.py", "exec"), inner.__dict__)
    return inner.f, sibling


@scenario(after_change=(None,))
def relative_imports():
    f, sibling = relative("cd_test_package")

    def cleanup():
        for name in [n for n in sys.modules if n.startswith("cd_test_package")]:
            del sys.modules[name]

    return Setup(f, lambda: (t(3),), changes=(lambda: setattr(sibling, "SCALE", 5),), cleanup=cleanup)


@case(lambda: (t(3),), skip="UnsupportedOpcode")
def star_import_in_module_code(x):
    names = {}
    exec("from math import *", names)
    return x * names["pi"]


# ---- globals ----

box = [1]
GLOBALS = """
counter = 0

def f(x):
    global counter, made_here
    counter += 1
    made_here = x + counter
    n = counter
    r = made_here
    del made_here
    try:
        made_here
    except NameError as error:
        return r, n, error.args
"""


@scenario(captures=(1, 1))
def global_writes():
    space = {}
    exec(GLOBALS, space)
    return Setup(space["f"], lambda: (t(3),), lambda: (space["counter"], "made_here" in space))


@scenario(after_change=(1,))
def global_shadows_builtin():
    space = {"__builtins__": __builtins__}
    exec("def f(x):\n    return x * len([1, 2])", space)

    def change():
        space["len"] = lambda v: 7

    return Setup(space["f"], lambda: (t(3),), changes=(change,))


@case(lambda: (t(3),))
def globals_and_locals_functions(x):
    y = 3
    return x + y, sorted(k for k in locals()), globals()["box"] is box, "x" in vars()


@case(lambda: (t(3),))
def conditional_expressions_and_chains(x):
    log = []

    def v(n):
        log.append(n)
        return n

    a = v(1) < v(2) < v(3)
    b = v(5) < v(4) < v(6)
    c = v(0) or v(2) and v(3)
    d = v(7) if v(0) else v(8)
    e = not v(0)
    f = 1 < 2 == 2 in [2] is not None
    return x + 1, a, b, c, d, e, f, log


@case(lambda: (t(3), [1, None, 2]))
def loops_until_none(x, items):
    pending = list(items)
    n = pending[0]
    while n is not None:
        x = x + n
        n = pending.pop(0) if pending else None
    found = None
    rest = [None, None, 5]
    while found is None:
        found = rest.pop(0)
    return x, found, [i for i in items if i is not None], [i for i in items if i is None]


@scenario(skip="*")
def class_body_names():
    scale = 3

    def f(x):
        # A class body reads cells of its function, its own names, globals; and can delete.
        class Body:
            size = scale
            both = size + len(box)
            del size
            items: list = [both, scale]

            def get(self):
                return scale

        torch._dynamo.graph_break()
        return x * Body().get(), Body.items, hasattr(Body, "size"), Body.__annotations__

    return Setup(f, lambda: (t(3),))


if sys.version_info >= (3, 12):

    @scenario(skip="*")
    def type_parameters():
        source = """# Python 3.12
def f(x):
    def g[T, *Ts, **P](a: T, *rest: *Ts) -> T:
        return a * 2

    def h[T: int, S: (int, str)](a: T) -> S:
        return a

    class Box[T]:
        item: T
        type Size = size

    type Pair[T] = tuple[T, T]
    return g(x + 1), h(x), g.__type_params__[0].__name__, Box.Size.__value__, Pair.__name__
"""
        space = {"size": int}
        exec(source, space)
        return Setup(space["f"], lambda: (t(3),))


test_lang_syntax = cases.as_test(__name__)
