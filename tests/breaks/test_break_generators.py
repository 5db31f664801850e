"""Breaks in comprehensions and generator expressions, and while generators are half way."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import itertools

import torch
from harness import Breaks, Setup, boom, ext, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


def counted(n):
    note("start")
    for i in range(n):
        note("yield", i)
        yield i
    note("end")


def running(x, n):
    for _ in range(n):
        x = x * 2
        yield x


def echo():
    """Gives back what it is sent."""
    got = None
    while True:
        got = yield (got if got is None else got * 2)


def cleaned():
    try:
        yield 1
        yield 2
    finally:
        note("cleaned")


def delegating(x):
    yield x
    r = yield from inner_generator(x)
    yield r


def inner_generator(x):
    yield x + 1
    yield x + 2
    return x + 3


def breaking(x, n):
    """Breaks between its values."""
    for i in range(n):
        x = x + 1
        ext(i)
        yield x * 2


def breaking_in_try(x):
    try:
        x = x + 1
        ext(x)
        yield x
        boom(KeyError, 1)
    except KeyError:
        yield x * 2
    finally:
        note("finally")


COMPREHENSIONS = {
    "list": "y = x + 1\nr = [ext(v) for v in [1, 2, 3]]\nreturn y * sum(r)",
    "list_of_tensors": "r = [ext(x + v) for v in [1, 2, 3]]\nreturn r[0] * r[2], r",
    "list_condition": "y = x + 1\nr = [v for v in [1, 2, 3] if ext(v) > 1]\nreturn y * sum(r)",
    "list_condition_else": "y = x + 1\nr = [v if ext(v) > 1 else -v for v in [1, 2, 3]]\nreturn y * sum(r)",
    "list_nested": "y = x + 1\nr = [ext(a * b) for a in [1, 2] for b in [3, 4]]\nreturn y * sum(r)",
    "list_in_list": "y = x + 1\nr = [[ext(a * b) for a in [1, 2]] for b in [3, 4]]\nreturn y * r[0][1], r",
    "list_closure": "y = x + 1\nn = 3\nr = [ext(v * n) for v in [1, 2]]\nreturn y * sum(r)",
    "list_iterable_breaks": "y = x + 1\nr = [v * 2 for v in ext([1, 2])]\nreturn y * sum(r)",
    "list_break_before": "y = ext(x + 1)\nr = [y * v for v in [1, 2]]\nreturn r",
    "set": "y = x + 1\nr = {ext(v % 2) for v in [1, 2, 3]}\nreturn y * len(r)",
    "dict": "y = x + 1\nr = {v: ext(v * 2) for v in [1, 2, 3]}\nreturn y * r[2], r",
    "dict_key": "r = {ext(v): x * v for v in [1, 2, 3]}\nreturn r",
    "dict_condition": "r = {v: x * v for v in [1, 2, 3] if ext(v) != 2}\nreturn r",
    "walrus_out": "y = x + 1\nr = [(last := ext(v)) for v in [1, 2]]\nreturn y * last, r",
    "error_inside": """
        y = x + 1
        try:
            r = [boom(KeyError, v) if v == 2 else v for v in [1, 2, 3]]
        except KeyError:
            r = [7]
        return y * sum(r)
        """,
    "values_on_stack": "return (x + 1, [ext(v) for v in [1, 2]], x * 2)",
    "expression_consumed": "y = x + 1\nr = sum(ext(v) for v in [1, 2, 3])\nreturn y * r",
    "expression_list": "y = x + 1\nr = list(ext(v) for v in [1, 2, 3])\nreturn y * r[1]",
    "expression_tuple": "r = tuple(ext(x * v) for v in [1, 2, 3])\nreturn r[0] + r[1]",
    "expression_any": "y = x + 1\nr = any(ext(v) > 1 for v in [1, 2, 3])\nreturn y * r",
    "expression_all": "y = x + 1\nr = all(ext(v) > 1 for v in [1, 2, 3])\nreturn y * (not r)",
    "expression_max": "y = x + 1\nr = max(ext(v) for v in [1, 2, 3])\nreturn y * r",
    "expression_dict": "y = x + 1\nr = dict((v, ext(v)) for v in [1, 2, 3])\nreturn y * r[2], r",
    "expression_join": "y = x + 1\nr = '-'.join(ext(v) for v in 'abc')\nreturn y * len(r), r",
    "expression_next": "y = x + 1\nr = next(ext(v) for v in [5, 6])\nreturn y * r",
    "expression_half": "y = x + 1\ng = (v * 2 for v in [1, 2, 3])\na = next(g)\next(a)\nreturn y * sum(g)",
    "expression_star": "y = x + 1\nr = [*(ext(v) for v in [1, 2])]\nreturn y * r[1]",
    "expression_loop": "for v in (ext(v) for v in [1, 2]):\n    x = x + v\nreturn x * 2",
    "expression_unpacked": "y = x + 1\na, b = (ext(v) for v in [1, 2])\nreturn y * a * b",
    "expression_returned": "y = x + 1\next(y)\ng = (y * v for v in [1, 2])\nreturn list(g)",
}
breaks.table({f"comprehension_{n}": (r, {"graphs": (1, 8), "settled": 2}) for n, r in COMPREHENSIONS.items()}, globals())

GENERATORS = {
    "half_way": "g = counted(4)\na = next(g)\nb = next(g)\ny = x + b\next(y)\nc = next(g)\nreturn y * c, list(g)",
    "half_way_tensor": "g = running(x, 4)\na = next(g)\next(a)\nb = next(g)\nreturn a + b, next(g), len(list(g))",
    "not_started": "g = running(x, 2)\ny = x + 1\next(y)\nreturn y + next(g), next(g)",
    "finished": "g = running(x, 2)\nr = list(g)\next(r[0])\nreturn r[0] * 2, next(g, None)",
    "dropped_half_way": "g = cleaned()\nnext(g)\ny = x + 1\next(y)\ndel g\nnote('after')\nreturn y * 2",
    "closed_after": "g = cleaned()\nnext(g)\ny = x + 1\next(y)\ng.close()\nnote('after')\nreturn y * 2",
    "closed_before": "g = cleaned()\nnext(g)\ng.close()\ny = x + 1\next(y)\nreturn y * 2, next(g, None)",
    "two_alive": "a, b = running(x, 3), counted(3)\ny = next(a) + next(b)\next(y)\nreturn y * next(a) + next(b)",
    "sent": "g = echo()\nnext(g)\ny = g.send(x)\next(y)\nz = g.send(y)\nreturn y + z",
    "sent_int": "g = echo()\nnext(g)\nn = g.send(3)\ny = x * n\next(y)\nreturn y * g.send(4)",
    "thrown": """
        g = cleaned()
        next(g)
        y = x + 1
        ext(y)
        try:
            g.throw(KeyError('k'))
        except KeyError:
            y = y * 2
        return y
        """,
    "delegating": "g = delegating(x)\na = next(g)\nb = next(g)\next(b)\nreturn a, b, next(g) * 2, next(g) * 3",
    "through_islice": "g = itertools.islice(running(x, 5), 3)\na = next(g)\next(a)\nreturn a + next(g), len(list(g))",
    "through_zip": "g = zip(running(x, 3), counted(3))\na, i = next(g)\next(a)\nb, j = next(g)\nreturn a + b * j",
    "through_enumerate": "g = enumerate(running(x, 3))\ni, a = next(g)\next(a)\nj, b = next(g)\nreturn a + b * j",
    "through_map": "g = map(lambda v: v + 1, running(x, 3))\na = next(g)\next(a)\nreturn a + next(g)",
    "iterator_list": "g = iter([x, x + 1, x + 2])\na = next(g)\next(a)\nreturn a + next(g), list(g)",
    "iterator_dict": "d = {'a': x, 'b': x + 1}\ng = iter(d.items())\nk, a = next(g)\next(a)\nreturn a * 2, list(g)",
    "iterator_reversed": "g = reversed([x, x + 1, x + 2])\na = next(g)\next(a)\nreturn a + next(g), list(g)",
    "iterator_range": "g = iter(range(5))\nnext(g)\ny = x + next(g)\next(y)\nreturn y * next(g), list(g)",
    "iterator_zip": "g = zip([1, 2, 3], [4, 5, 6])\na = next(g)\ny = x * a[0]\next(y)\nreturn y * next(g)[1], list(g)",
    "iterator_count": "g = itertools.count(3)\ny = x * next(g)\next(y)\nreturn y * next(g), next(g)",
    "iterator_cycle": "g = itertools.cycle([1, 2])\ny = x * next(g)\next(y)\nreturn y * next(g), next(g)",
    "iterator_string": "g = iter('abc')\nnext(g)\ny = x + 1\next(y)\nreturn y * 2, ''.join(g)",
    "iterator_set": "g = iter({1})\ny = x + next(g)\next(y)\nreturn y * 2, list(g)",
    "iterator_callable": """
        v = [3, 2, 1]
        g = iter(lambda: v.pop(), 3)
        y = x + next(g)
        ext(y)
        return y * next(g), list(g)
        """,
    "breaks_inside": "t = x * 0\nfor v in breaking(x, 3):\n    t = t + v\nreturn t",
    "breaks_inside_next": "g = breaking(x, 3)\na = next(g)\nb = next(g)\nreturn a + b, len(list(g))",
    "breaks_inside_list": "r = list(breaking(x, 3))\nreturn r[0] + r[2]",
    "breaks_inside_zip": "t = x * 0\nfor a, b in zip(breaking(x, 2), breaking(x, 2)):\n    t = t + a * b\nreturn t",
    "breaks_inside_try": "r = list(breaking_in_try(x))\nreturn r[0] + r[1]",
    "breaks_in_yield_from": "def g():\n    yield from breaking(x, 2)\nr = list(g())\nreturn r[0] + r[1]",
    "passed_on": "g = running(x, 3)\nnext(g)\nr = ext(g)\nreturn next(r) * 2, r is g",
    "consumed_by_break": "g = running(x, 3)\na = next(g)\nb = pull(g)\nreturn a + b, len(list(g))",
    "kept_in_list": "l = [running(x, 3)]\na = next(l[0])\next(a)\nreturn a + next(l[0])",
    "kept_in_object": "o = Box(running(x, 3))\na = next(o.v)\next(a)\nreturn a + next(o.v)",
    "kept_in_closure": "g = running(x, 3)\ndef step():\n    return next(g)\na = step()\next(a)\nreturn a + step()",
}


class Box:
    def __init__(self, v):
        self.v = v


@torch.compiler.disable
def pull(g):
    return next(g)


breaks.table({f"generator_{n}": (r, {"graphs": (1, 8), "settled": 2, "share": 0.5}) for n, r in GENERATORS.items()}, globals())


@scenario(graphs=None, settled=2, share=0.0)
def returned_generator():
    """A generator that outlives the call goes on as in eager."""

    def fn(x):
        g = running(x, 3)
        next(g)
        ext(x)
        return g

    return Setup(fn, lambda: (t(3),), after=lambda g: list(g))


@scenario(graphs=None, settled=2, share=0.0, breaks=(0, 3))
def generator_of_the_user():
    """The compiled function is itself a generator function."""

    def fn(x):
        for i in range(3):
            x = x + 1
            ext(i)
            yield x

    return Setup(fn, lambda: (t(3),), after=lambda g: list(g))


test = breaks.as_test()
