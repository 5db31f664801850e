"""Programs with marks: every mark in turn is the one that breaks, the others are plain Python. Then all of them break."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import contextlib
import textwrap

import torch
from harness import Breaks, Setup, defined, ext, note, t

breaks = Breaks()


class Box:
    def __init__(self, v):
        self.v = v

    def __add__(self, other):
        return Box(self.v + other)


class Manager:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        note("enter", self.name)
        return self

    def __exit__(self, kind, value, trace):
        note("exit", self.name, kind and kind.__name__)
        return kind is KeyError


def same(v=None):
    """A mark that does not break."""
    note_quietly(v)
    return v


def note_quietly(v):
    return None


# Marks are written «value»; each is a call that gives the value back.
PROGRAMS = {
    "arithmetic": """
        a = «x + 1» * «2»
        b = «a» - «x»
        return «a * b», «b»
    """,
    "loops": """
        out = «[]»
        for i in «range(3)»:
            for j in «(1, 2)»:
                x = x + «j»
                if «i» == 1:
                    «None»
                    continue
                out.append(«x»)
            else:
                x = «x» * 2
        return «out», x
    """,
    "while_loop": """
        n = «0»
        while «n» < 3:
            x = «x + 1»
            n += «1»
            if n == «2»:
                break
        else:
            x = x * «100»
        return x * «n»
    """,
    "tries": """
        y = «x» + 1
        try:
            y = y * «2»
            try:
                y = y + «3»
                raise KeyError(«4»)
            except KeyError as e:
                y = y * «e.args[0]»
                raise ValueError(«5») from e
            finally:
                y = y - «6»
        except ValueError as e:
            y = y * «e.args[0]»
            c = «type(e.__cause__).__name__»
        else:
            y = y * «100»
        finally:
            y = y + «7»
        return «y», c
    """,
    "withs": """
        with Manager(«'a'») as m:
            y = x + «1»
            with «Manager('b')», contextlib.nullcontext(«3») as n:
                y = y * «n»
                raise KeyError(«1»)
            y = y + «5»
        with torch.no_grad():
            y = y * «2»
        return «y», m.name
    """,
    "objects": """
        o = Box(«x»)
        o = o + «1»
        o.w = «o.v * 2»
        d = {«'k'»: o, 'l': [«o.v», o]}
        d['l'].append(«d»['k'].w)
        o.v = «o».v + d['l'][0]
        return d, «o.v»
    """,
    "closures": """
        n = «1»
        def add(v, w=«2»):
            nonlocal n
            n += «1»
            return v + «w» * n
        y = add(«x»)
        z = add(y, w=«3»)
        f = lambda v: v * «n»
        return f(«z»), n
    """,
    "comprehensions": """
        a = [x * «v» for v in «[1, 2]» if «v» > 0]
        b = {k: «v» for k, v in zip(«'ab'», a)}
        c = sum(«v» for v in (1, 2, 3))
        return [«v» for v in b.values()], x * c
    """,
    "generators": """
        def g(v):
            for i in range(«3»):
                v = v + «1»
                yield «v» * i
        it = g(«x»)
        a = next(it)
        b = «next(it)»
        for v in it:
            a = a + «v»
        return a * b
    """,
    "calls": """
        def f(a, b=1, *rest, k=2, **named):
            a = a + «b»
            return a * k, «rest», named
        p = f(«x», «2», «3», k=«4», z=«5»)
        q = f(*«(x, 2)», **«{'k': 3}»)
        r = max(«1», «2», key=lambda v: -v)
        return p, q, x * «r»
    """,
    "nesting": """
        def one(v):
            w = v + «1»
            return two(w) * «w»
        def two(v):
            w = v * «2»
            try:
                return three(w) - «w»
            finally:
                note('two')
        def three(v):
            w = v - «3»
            for _ in range(2):
                w = w * «2»
            return w + «v»
        return one(«x») + «1»
    """,
    "errors_up": """
        def deep(v, n):
            v = «v» + 1
            if n == 0:
                raise KeyError(«n»)
            try:
                return deep(v, n - «1»)
            finally:
                note('level', «n»)
        y = x + 1
        try:
            deep(y, 2)
        except KeyError as e:
            y = y * «2»
        return «y»
    """,
    "unpacking": """
        a, (b, *c) = «1», («x», 2, «3»)
        d, e = «c»
        [f, *_] = «[b, a]»
        s = f'{«a»}-{d:>{«3»}}{«e»!r}'
        return f * d, s, «x»[«1»:]
    """,
    "matching": """
        match «{'kind': 'a', 'v': x}»:
            case {'kind': 'b'}:
                return x
            case {'kind': 'a', 'v': v} if «True»:
                y = v * «2»
        match «[1, 2, 3]»:
            case [a, *b]:
                y = y + «a» * len(b)
        return «y»
    """,
    "booleans": """
        a = «1» and «x» is not None and «3»
        b = «0» or «None» or «4»
        c = 1 < «2» < «3» < 4
        d = x * 2 if not «False» else «x»
        return d * a * b, c, «d»
    """,
    "in_place": """
        y = x + «1»
        v = y[«1»:]
        v += «2»
        y[0] = «5»
        y.mul_(«2»)
        l = [y]
        l[«0»] += «1»
        return y, v, «l»
    """,
    "iterators": """
        it = iter(«[1, 2, 3, 4]»)
        e = enumerate(«it», start=«1»)
        i, a = next(e)
        y = x * «a»
        z = zip(e, «'ab'»)
        (j, b), s = next(«z»)
        y = y + b * «j»
        return y, list(it), «s»
    """,
    "tensors_of_data": """
        y = x + 1
        if «y.sum() > 0»:
            y = y * 2
        n = «y.sum()».item()
        while y.sum() < «100»:
            y = y * «2»
        return y, n > 0
    """,
}


def variants(text):
    count = text.count("«")
    for chosen in [*range(count), None]:
        parts, n = [], 0
        for piece in text.split("«"):
            if not parts:
                parts.append(piece)
                continue
            parts.append(("ext(" if chosen in (n, None) else "same(") + piece.replace("»", ")", 1))
            n += 1
        yield chosen, "".join(parts)


for name, program in PROGRAMS.items():
    for chosen, text in variants(textwrap.dedent(program).strip()):
        full = f"{name}_{'all' if chosen is None else chosen}"
        source = f"def {full}(x):\n" + textwrap.indent(text, "    ") + "\n"
        fn = defined(full, source, globals())
        breaks.add(full, lambda fn=fn: Setup(fn, lambda: (t(3),)), graphs=None, settled=2, breaks=(0, 200))

test = breaks.as_test()
