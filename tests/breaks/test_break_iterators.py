"""Loops that go on after a break over real iterators; breaks inside generators, however they are consumed."""

# The rows of the tables use the names imported here.
# ruff: noqa: E501, F401

import contextlib
import functools
import itertools

import torch
from harness import LOG, Breaks, Setup, boom, ext, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


# ---- loops: one graph for all turns, one before, one after --------------------------------------------------------------

LOOPS = {
    "list": ("for v in [1.0, 2.0, 3.0, 4.0, 5.0]:\n    x = x * v\n    ext(v)\n    x = x + 1", {"graphs": (3, 4)}),
    "tensors": ("for v in [x, x + 1, x + 2, x + 3]:\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "tuple": ("for v in (x, x + 1, x + 2, x + 3):\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "range": ("for i in range(6):\n    x = x * 2\n    ext(i)\n    x = x + 1", {}),
    "range_used": ("for i in range(6):\n    x = x * i\n    ext(i)\n    x = x + 1", {"graphs": (3, 4)}),
    "dict_keys": ("for k in {'a': 1, 'b': 2, 'c': 3, 'd': 4}:\n    x = x * 2\n    ext(k)\n    x = x + 1", {}),
    "dict_values": ("for v in {'a': x, 'b': x + 1, 'c': x + 2}.values():\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "dict_items": ("for k, v in {'a': x, 'b': x + 1, 'c': x + 2}.items():\n    x = x * v\n    ext(k)\n    x = x + 1", {}),
    "set": ("for v in {7}:\n    x = x * 2\n    ext(v)\n    x = x + 1", {"graphs": 2}),
    "string": ("for v in 'abcde':\n    x = x * 2\n    ext(v)\n    x = x + 1", {}),
    "bytes": ("for v in b'abcde':\n    x = x * 2\n    ext(v)\n    x = x + 1", {}),
    "reversed": ("for v in reversed([x, x + 1, x + 2]):\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "zip": ("for a, b in zip([x, x + 1, x + 2], (1.0, 2.0, 3.0)):\n    x = x * a\n    ext(b)\n    x = x + 1", {}),
    "enumerate": ("for i, v in enumerate([x, x + 1, x + 2, x + 3]):\n    x = x * v\n    ext(i)\n    x = x + 1", {}),
    "enumerate_used": ("for i, v in enumerate([x, x + 1, x + 2, x + 3]):\n    x = x * i\n    ext(i)\n    x = x + v", {"graphs": (3, 4)}),
    "enumerate_of_zip": ("for i, (a, b) in enumerate(zip([x, x + 1, x + 2], [1, 2, 3])):\n    x = x * a\n    ext(i)\n    x = x + 1", {}),
    "map": ("for v in map(lambda v: v * 2, [x, x + 1, x + 2]):\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "filter": (
        "for v in filter(lambda v: v is not None, [None, x, None, x + 1, x + 2]):\n    x = x * v\n    ext(v)\n    x = x + 1",
        {"graphs": (3, 4)},
    ),
    "generator": ("for v in running(x, 4):\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "generator_expression": ("for v in (v * 2 for v in [x, x + 1, x + 2]):\n    x = x * v\n    ext(v)\n    x = x + 1", {}),
    "generator_delegating": ("for v in delegating(x):\n    x = x * v\n    ext(v)\n    x = x + 1", {"graphs": (3, 8)}),
    "parameters": ("for p in LINEAR.parameters():\n    x = x * p.sum()\n    ext(0)\n    x = x + 1", {"graphs": (2, 8)}),
    "keys_written": (
        "d = {'a': x, 'b': x + 1, 'c': x + 2}\nfor k in d:\n    ext(k)\n    d[k] = d[k] * 2\nx = x + d['a'] + d['c']",
        {"graphs": (2, 8)},
    ),
    "list_grows": ("l = [x, x + 1]\nfor v in l:\n    ext(v)\n    x = x + v\n    if len(l) < 4:\n        l.append(x * 2)", {"graphs": (2, 12)}),
    "list_shrinks": ("l = [x, x + 1, x + 2, x + 3]\nfor v in l:\n    ext(v)\n    x = x + v\n    l.pop()", {"graphs": (2, 12)}),
    "break_once": ("for i, v in enumerate([x, x + 1, x + 2, x + 3]):\n    x = x * v\n    if i == 1:\n        ext(i)\n    x = x + 1", {"graphs": 2}),
    "left_early": ("for v in [x, x + 1, x + 2, x + 3]:\n    x = x * v\n    if ext(v) is None or x.shape[0] == 4:\n        break\n    x = x + 1", {}),
    "with_else": ("for v in [x, x + 1, x + 2]:\n    ext(v)\n    x = x * v\nelse:\n    x = x + 7", {"graphs": (3, 4)}),
    "nested": ("for a in [x, x + 1]:\n    for b in (1.0, 2.0):\n        x = x * a\n        ext(b)\n        x = x + 1", {"graphs": (3, 5)}),
    "zip_of_generators": ("for a, b in zip(running(x, 3), running(x + 1, 3)):\n    x = x * a\n    ext(b)\n    x = x + b", {}),
}
LINEAR = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(4)]).requires_grad_(False)


def running(x, n):
    for _ in range(n):
        x = x * 2
        yield x


def delegating(x):
    yield x
    yield from running(x, 2)
    yield x + 1


breaks.table(
    {f"loop_{n}": (body + "\nreturn x", {"graphs": 3, "settled": 2, **own}) for n, (body, own) in LOOPS.items()},
    globals(),
)

# ---- breaks inside generators ----------------------------------------------------------------------------------------


def breaking(x, n):
    for i in range(n):
        x = x + 1
        ext(i)
        yield x * 2


def once(x):
    """One break."""
    x = x + 1
    ext(x)
    yield x * 2
    yield x * 3


def returning(x):
    x = x + 1
    ext(x)
    yield x
    return x * 5


def cleaning(x):
    try:
        x = x + 1
        ext(x)
        yield x * 2
        yield x * 3
    finally:
        note("cleaned")


def in_handler(x):
    try:
        raise KeyError(3)
    except KeyError as error:
        x = x + 1
        ext(error.args[0])
        yield x * 2
        try:
            ext(0)
            raise ValueError(4)
        except ValueError as other:
            yield x * other.args[0] * other.__context__.args[0]


def raising(x):
    x = x + 1
    ext(x)
    yield x * 2
    x = x * 3
    boom(KeyError, "raised")
    yield x


def stopping(x):
    x = x + 1
    ext(x)
    yield x * 2
    next(iter(()))
    yield x


def echoing(x):
    while True:
        got = yield x * 2
        ext(got)
        x = x + got


def catching(x):
    while True:
        try:
            yield x * 2
        except KeyError as error:
            ext(error.args[0])
            x = x + error.args[0]


def with_cells(x):
    n = 1

    def more(y):
        return y * n

    for _ in range(3):
        n += 1
        ext(n)
        yield more(x)


@contextlib.contextmanager
def managed(x):
    y = x + 1
    ext(y)
    try:
        yield y * 2
    finally:
        ext(0)


class Iterating:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        yield self.x + 1
        ext(1)
        yield self.x + 2


class Counting:
    def __init__(self, x, n):
        self.x, self.n = x, n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        self.x = self.x + 1
        ext(self.n)
        return self.x * 2


def doubled(v):
    w = v * 2
    ext(w)
    return w + 1


INSIDE = {
    "for": "r = x * 0\nfor v in once(x):\n    r = r + v\nreturn r",
    "next": "g = once(x)\nreturn next(g) + next(g)",
    "next_default": "g = once(x)\nreturn next(g, None) + next(g, None), next(g, 7)",
    "next_method": "g = once(x)\nreturn g.__next__() + g.__next__()",
    "list": "a, b = list(once(x))\nreturn a + b",
    "tuple": "a, b = tuple(once(x))\nreturn a + b",
    "sum": "return sum(once(x)) * 2",
    "sum_start": "return sum(once(x), x) * 2",
    "starred": "a, b = [*once(x)]\nreturn a + b",
    "star_argument": "return torch.add(*once(x)) * 2",
    "unpacked": "a, b = once(x)\nreturn a + b",
    "unpacked_rest": "a, *b = once(x)\nreturn a + b[0]",
    "unpacked_too_few": "try:\n    a, b, c = once(x)\nexcept ValueError as e:\n    return x * 2, str(e)",
    "unpacked_too_many": "try:\n    a, = once(x)\nexcept ValueError as e:\n    return x * 2, str(e)",
    "zip": "r = x * 0\nfor a, b in zip(once(x), [1.0, 2.0]):\n    r = r + a * b\nreturn r",
    "zip_strict": "r = x * 0\nfor a, b in zip(once(x), [1.0, 2.0], strict=True):\n    r = r + a * b\nreturn r",
    "zip_strict_shorter": "try:\n    list(zip([1, 2, 3], once(x), strict=True))\nexcept ValueError as e:\n    return x * 2, str(e)",
    "zip_strict_longer": "try:\n    list(zip([1], once(x), strict=True))\nexcept ValueError as e:\n    return x * 2, str(e)",
    "enumerate": "r = x * 0\nfor i, v in enumerate(once(x), 1):\n    r = r + v * i\nreturn r",
    "map_over": "r = x * 0\nfor v in map(lambda v: v + 1, once(x)):\n    r = r + v\nreturn r",
    "filter_over": "r = x * 0\nfor v in filter(lambda v: v.shape[0] == 3, once(x)):\n    r = r + v\nreturn r",
    "expression_over": "r = x * 0\nfor v in (w * 2 for w in once(x)):\n    r = r + v\nreturn r",
    "comprehension_over": "a, b = [w * 2 for w in once(x)]\nreturn a + b",
    "dict_of": "d = dict(enumerate(once(x)))\nreturn d[0] + d[1]",
    "any": "return x * any(v.shape[0] == 3 for v in once(x))",
    "all": "return x * all(v.shape[0] == 3 for v in once(x))",
    "extend": "l = [x]\nl.extend(once(x))\nreturn l[0] + l[1] + l[2]",
    "join": "y = x + 1\nreturn y * len(','.join(ext('ab') for _ in range(2)))",
    "yield_from": "def g():\n    yield from once(x)\nr = x * 0\nfor v in g():\n    r = r + v\nreturn r",
    "yield_from_value": "def g():\n    r = yield from returning(x)\n    yield r\na, b = g()\nreturn a + b",
    "return_value": "g = returning(x)\na = next(g)\ntry:\n    next(g)\nexcept StopIteration as e:\n    return a + e.value",
    "in_callee": "def f():\n    return next(once(x)) * 2\nreturn f() + 1",
    "in_handler": "r = x * 0\nfor v in in_handler(x):\n    r = r + v\nreturn r",
    "raises": "r = x * 0\ntry:\n    for v in raising(x):\n        r = r + v\nexcept KeyError:\n    r = r * 2\nreturn r",
    "raises_finished": "g = raising(x)\na = next(g)\ntry:\n    next(g)\nexcept KeyError:\n    pass\nreturn a * 2, next(g, 'end')",
    "raises_uncaught": ("for v in raising(x):\n    x = x + v\nreturn x", {"graphs": (2, 4)}),
    "stop_iteration": "try:\n    for v in stopping(x):\n        x = x + v\nexcept RuntimeError as e:\n    return x, str(e)",
    "sent": "g = echoing(x)\nnext(g)\na = g.send(x)\nb = g.send(x * 2)\nreturn a + b",
    "thrown": "g = catching(x)\na = next(g)\nb = g.throw(KeyError(3))\nreturn a + b, next(g)",
    "closed": "g = cleaning(x)\na = next(g)\ng.close()\nreturn a * 2, next(g, 'end')",
    "cells": "r = x * 0\nfor v in with_cells(x):\n    r = r + v\nreturn r",
    "context_manager": "with managed(x) as y:\n    x = x + y\nreturn x * 3",
    "context_manager_raises": "try:\n    with managed(x) as y:\n        boom(KeyError, 1)\nexcept KeyError:\n    x = x * 3\nreturn x",
    "two_at_once": "r = x * 0\nfor a, b in zip(once(x), once(x + 1)):\n    r = r + a * b\nreturn r",
    "nested": "def g():\n    for v in once(x):\n        yield v + 1\nr = x * 0\nfor v in g():\n    r = r + v\nreturn r",
    "iter_method": "r = x * 0\nfor v in Iterating(x):\n    r = r + v\nreturn r",
    "iter_method_unpacked": "a, b = Iterating(x)\nreturn a * b",
    "next_method_of_class": "r = x * 0\nfor v in Counting(x, 3):\n    r = r + v\nreturn r",
    "next_method_of_class_list": "a, b, c = list(Counting(x, 3))\nreturn a + b + c",
    "next_method_of_class_zip": "r = x * 0\nfor a, b in zip(Counting(x, 2), Counting(x, 3)):\n    r = r + a * b\nreturn r",
    "kept_in_list": "l = [breaking(x, 3)]\na = next(l[0])\nb = next(l[0])\nreturn a + b, len(list(l[0]))",
    "kept_and_the_same": "g = breaking(x, 3)\nl = [g]\na = next(g)\nnote(0)\nb = next(l[0])\nreturn a + b, l[0] is g",
    "handed_out": "g = breaking(x, 3)\na = next(g)\nreturn a * 2, g",
    "seen_running": "def g():\n    ext(me[0].gi_running)\n    try:\n        next(me[0])\n    except ValueError as e:\n        yield x * 2, str(e)\nme = []\nme.append(g())\nreturn next(me[0])",
    "deep": "def down(n):\n    if n:\n        for v in down(n - 1):\n            yield v + 1\n    else:\n        ext(n)\n        yield x * 2\nreturn next(down(5)) * 3",
    "keys_sorted": "y = x + 1\nr = sorted([3, 1, 2], key=lambda v: -v if ext(v) else 0)\nreturn y * r[0], r",
    "keys_sorted_reverse": "y = x + 1\nr = sorted('bca', key=lambda v: ord(ext(v)), reverse=True)\nreturn y * 2, r",
    "key_max": "y = x + 1\nreturn y * max([1, 3, 2], key=lambda v: ext(v))",
    "key_min_of_generator": "y = x + 1\nreturn y * min((v for v in [1, 3, 2]), key=lambda v: -ext(v))",
    "key_max_default": "y = x + 1\nreturn y * max([], key=lambda v: ext(v), default=ext(4))",
    "key_max_empty": "y = x + 1\next(0)\ntry:\n    max([], key=lambda v: ext(v))\nexcept ValueError as e:\n    return y * 2, str(e)",
    "map_function": "a, b = map(doubled, [x, x + 1])\nreturn a * b",
    "map_function_two": "r = x * 0\nfor v in map(lambda a, b: doubled(a) * b, [x, x + 1], [1, 2]):\n    r = r + v\nreturn r",
    "starmap_function": "r = x * 0\nfor v in itertools.starmap(lambda a, b: doubled(a) * b, [(x, 2), (x + 1, 3)]):\n    r = r + v\nreturn r",
    "filter_function": "r = x * 0\nfor v in filter(lambda v: ext(v) > 1, [1, 2, 3]):\n    r = r + v\nreturn r",
    "reduce_function": "return functools.reduce(lambda a, b: doubled(a) * b, [x, x + 1, x + 2]) * 2",
    "property_set_by_super": "o = Setting(x)\no.prop = x\nreturn o.v * 3",
    "property_set_by_builtin": "o = Setting(x)\nsetattr(o, 'prop', x)\nreturn o.v * 3",
    "property_deleted_by_object": "o = Setting(x)\ndel o.prop\nreturn o.v * 3",
}


class Setting:
    def __init__(self, v):
        object.__setattr__(self, "v", v)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)

    def __delattr__(self, name):
        object.__delattr__(self, name)

    @property
    def prop(self):
        return self.v

    @prop.setter
    def prop(self, value):
        w = value + 1
        ext(w)
        object.__setattr__(self, "v", w * 2)

    @prop.deleter
    def prop(self):
        w = self.v + 1
        ext(w)
        object.__setattr__(self, "v", w * 2)


def row(body):
    return body if isinstance(body, tuple) else (body, {})


breaks.table({f"inside_{n}": (row(b)[0], {"graphs": (1, 8), "settled": 2, **row(b)[1]}) for n, b in INSIDE.items()}, globals())


@case(lambda: (t(3),), config={"recompile_limit": 1}, graphs=None, settled=3, share=0.0)
def inside_refused(x):
    """The capture behind the break is refused: the generator goes on as it is, from the middle."""
    r = x * 0
    for n in (1, 2, 3):
        for v in breaking(x[:n], 2):
            r = r + v.sum()
    return r


@scenario(config={"recompile_limit": 1}, graphs=None, settled=3, share=0.0)
def inside_refused_handled_and_returned():
    def gen(x, n):
        try:
            raise KeyError(n)
        except KeyError as error:
            x = x[:n] + 1
            ext(error.args)
            yield x.sum()
            ext(1)
        return x

    def fn(x):
        r = []
        for n in (1, 2, 3):
            g = gen(x, n)
            r.append(next(g))
            try:
                next(g)
            except StopIteration as e:
                r.append(e.value)
        return r

    return Setup(fn, lambda: (t(3),))


test = breaks.as_test()
