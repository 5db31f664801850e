"""Small random programs on objects of every kind, each run eagerly and captured: methods with any arguments, operators, statements, and
classes with random special methods that note who calls them.

    operations.py [--seed N] [--count N]
"""

# ruff: noqa: SIM905
from __future__ import annotations

import argparse
import collections
import contextlib
import copy
import dataclasses
import functools
import io
import itertools
import math
import operator
import random
import sys
import textwrap
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "differential"))
from differ import Events
from sweep import Ordered

import cdynamo
from cdynamo._events import listening

NAMES = {module.__name__: module for module in (collections, math, operator, copy, torch, functools, itertools)}

HELPERS = """
class Index:
    def __init__(self, n): self.n = n
    def __index__(self): return self.n
class Int(int): pass
class Text(str): pass
class List(list): pass
class Tuple(tuple): pass
class Dict(dict):
    def __missing__(self, key): return ("missing", key)
class Set(set): pass
class Float(float): pass
class Equal:
    def __init__(self, value): self.value = value
    def __eq__(self, other): return self.value == (other.value if isinstance(other, Equal) else other)
    def __hash__(self): return hash(self.value)
class Less:
    def __init__(self, value): self.value = value
    def __lt__(self, other): return self.value < (other.value if isinstance(other, Less) else other)
def said_by(error):
    # Of a call with too many arguments CPython names one class or the other, as the method was looked up.
    return [a.split(".")[-1] if isinstance(a, str) and " given)" in a else a for a in error.args]
class Sized:
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        if i >= self.n: raise IndexError(i)
        return i * 10
"""

# ---- what is operated on ---------------------------------------------------------------------------------------------

ARGUMENTS = (
    "None;True;0;1;-1;3;2.5;-0.0;1j;'a';'';'b,c';b'a';[1, 2];[];(1, 'a');();{};{'a': 1};{1, 2};frozenset({1});range(3);slice(1);"
    "slice(None, None, -1);iter([1, 2]);Index(1);Index(-1);Int(2);Text('a');List([3]);Tuple((1,));Dict(a=1);Set({1});Float(1.5);Equal(1);"
    "Equal('a');Less(1);Sized(2);object;len;int;str;NotImplemented;...;float('inf');[[1], [2]];[('k', 1)];{1: 2, 3: 4};"
    "collections.deque([1, 2]);collections.Counter('aab');(i * 2 for i in (1, 2));'\u00df';'A';'%s';'{}';'12';' x ';'utf-8'"
).split(";")
SUBJECTS = (
    "'abc';'a,b,,c';' Ab1 ';'';'\u00dfx%s';Text('abc');'{} {a}';'\\t12';b'abc';b'a,b';b'';5;-7;0;10**18;True;Int(6);2.5;-0.0;float('nan');Float(2.0);"
    "1+2j;0j;[3, 1, 2];['a', 'b'];[];[1, 2.0, True];List([3, 1]);[[1], [2]];(3, 1, 2);();Tuple((1, 2));('a', 1);{'a': 1, 'b': 2};{};{1: 2};"
    "Dict(a=1);collections.OrderedDict(a=1, b=2);collections.defaultdict(list, {'a': [1]});collections.Counter('aab');{1, 2, 3};set();{'a'};"
    "Set({1, 2});frozenset({1, 2});frozenset();range(5);range(5, 0, -2);range(0);slice(1, 5, 2);slice(None);collections.deque([1, 2, 3]);"
    "collections.deque([1, 2], 2);{'a': 1, 'b': 2}.keys();{'a': 1}.items();{'a': 1}.values()"
).split(";")
OPERATORS = "+ - * / // % ** & | ^ << >> @".split()
COMPARISONS = "== != < <= > >= in is".split()
BUILTINS = (
    "abs all any ascii bin bool bytes callable chr complex dict divmod enumerate filter float format frozenset getattr hasattr hex int "
    "isinstance issubclass iter len list map max min next oct ord pow range repr reversed round set slice sorted str sum tuple type zip"
).split()
FUNCTIONS = [
    *BUILTINS,
    *BUILTINS,
    *(f"math.{n}" for n in sorted(vars(math)) if callable(getattr(math, n)) and n[0] != "_"),
    *(f"operator.{n}" for n in sorted(vars(operator)) if callable(getattr(operator, n)) and n[0] != "_"),
]
UNTOLD = {
    *("__class__", "__init_subclass__", "__subclasshook__", "__new__", "__reduce__", "__reduce_ex__", "__sizeof__", "__dir__", "__hash__"),
    *("__del__", "__class_getitem__", "add"),
}
KEYWORDS = ["key=lambda v: str(v)", "key=len", "default=1", "start=1", "strict=True", "reverse=True", "end=''", "base=8", "ndigits=1"]


def expression(rnd: random.Random, subject: str) -> str:
    given = [rnd.choice(ARGUMENTS) for _ in range(rnd.choice([0, 1, 1, 1, 2, 2, 3]))]
    form = rnd.random()
    if form < 0.5:
        scope = dict(NAMES)
        exec(HELPERS, scope)
        made = eval(subject, scope)
        names = [name for name in dir(made) if name not in UNTOLD and callable(getattr(made, name))]
        plain = [name for name in names if name[0] != "_"]
        return f"p = s.{rnd.choice(plain if plain and rnd.random() < 0.75 else names)}({', '.join(given)})"
    if form < 0.65:
        sides = ["s", rnd.choice(ARGUMENTS)]
        rnd.shuffle(sides)
        return f"p = {f' {rnd.choice(OPERATORS + COMPARISONS)} '.join(sides)}"
    if form < 0.75:
        return f"p = s[{rnd.choice(ARGUMENTS)}]"
    given = ["s", *given[:2]]
    rnd.shuffle(given)
    keyword = [rnd.choice(KEYWORDS)] if rnd.random() < 0.2 else []
    return f"p = {rnd.choice(FUNCTIONS)}({', '.join(given + keyword)})"


STATEMENTS = [
    *(f"s {o}= V" for o in OPERATORS),
    *("s[V] = V", "del s[V]", "s[V] = V", "del s[V]"),
    *(f"s[{part}] = V" for part in ("0", "1", "-1", ":1", "1:", "::2", "::-1", "1:1", "5:")),
    *(f"del s[{part}]" for part in ("0", "-1", ":1", "1:", "::2", "::-1", "9")),
    *("p, q = s", "p, *q = s", "*p, q = s", "p, (q, *r) = s", "[p] = s", "p, q, r = s"),
    "p = []\nfor i in s:\n    p.append(i)\n    if len(p) > 6: break",
    *("p = [*s, V]", "p = {**s, 'z': V}", "p = (lambda *a, **k: (a, sorted(k)))(*s)", "p = (lambda *a, **k: (a, sorted(k)))(**s)"),
    *("p = dict(s, b=V)", "p = dict(**s)", "p = max(*s)", "print(*s, sep='|')"),
    *(
        f"match s:\n    case {pattern}:\n        r = 1\n    case _:\n        r = 2"
        for pattern in ("[p, *q]", "[p, q]", "{'a': p, **q}", "str(p)", "int() | float() as p", "(p, 1)", "[1, *_] as p", "list(p)", "Int() as p")
    ),
    *(f"p = f'{{s!{c}:{w}}}'" for c in "rsa" for w in ("", ">10", ".2", "03")),
    *(f"p = f'{{s:{w}}}'" for w in ("", ">10", "<5", "^8", ".2f", "03", "x", "s", "d", "%", "e", ",")),
    *(f"p = '%{c}' % s" for c in "sradfxcei%"),
    *("p = '%s %s' % s", "p = '%(a)s' % s", "p = '{0} {a}'.format(s, a=s)", "p = '{0[0]}'.format(s)", "p = '{0.real}'.format(s)"),
    *("p = s if s else V", "p = not s", "p = s < V < V", "p = s == V == s", "assert s, V", "p = -s", "p = +s", "p = ~s", "p = abs(s)"),
    *("p = type(s)(s)", "p = copy.copy(s)", "p = copy.deepcopy(s)", "p = next(iter(s))", "p = sorted(s)", "p = list(reversed(s))"),
    *("p = [i for i in s if i]", "p = {i: V for i in s}", "p = {str(i) for i in s}", "p = list(zip(s, s))", "p = list(enumerate(s, 1))"),
    *("p = list(map(str, s))", "p = list(filter(None, s))", "p = dict.fromkeys(s)", "p = ','.join(map(str, s))", "p = collections.Counter(s)"),
    *("s.x = V", "del s.x", "s.__class__ = V", "p = getattr(s, V)", "p = getattr(s, 'x', V)", "setattr(s, V, 1)", "with s: pass", "raise s"),
    *("p = s(V)", "p = s()", "p = s.real", "p = s.keys()"),
]

# ---- classes ---------------------------------------------------------------------------------------------------------

METHODS: dict[str, tuple[str, list[str]]] = {}
for _name in "add sub mul truediv floordiv mod pow and or xor lshift rshift matmul".split():
    for _form in ("", "r", "i"):
        METHODS[f"__{_form}{_name}__"] = ("self, other", ["self", "1", "other", "NotImplemented", "[1]", "'s'", "raise ValueError('v')"])
for _name in "eq ne lt le gt ge".split():
    METHODS[f"__{_name}__"] = ("self, other", ["True", "False", "NotImplemented", "0", "'x'", "raise ValueError('v')"])
METHODS |= {
    "__hash__": ("self", ["1", "-1", "2**70", "'a'", "raise TypeError('h')"]),
    "__len__": ("self", ["0", "2", "-1", "'a'", "True", "raise ValueError('l')"]),
    "__bool__": ("self", ["True", "False", "1", "raise ValueError('b')"]),
    "__getitem__": ("self, key", ["raise IndexError(key)", "raise KeyError(key)", "(1, 2, 3)[key]"]),
    "__setitem__": ("self, key, value", ["None", "raise KeyError(key)"]),
    "__delitem__": ("self, key", ["None", "raise KeyError(key)"]),
    "__iter__": ("self", ["iter([1, 2])", "self", "5", "(i for i in range(2))", "raise TypeError('i')"]),
    "__next__": ("self", ["raise StopIteration", "raise StopIteration(3)"]),
    "__contains__": ("self, item", ["True", "0", "'x'", "raise ValueError('c')"]),
    "__call__": ("self, *a, **k", ["(a, k)", "raise ValueError('call')"]),
    "__getattr__": ("self, name", ["name", "raise AttributeError(name)", "raise ValueError(name)"]),
    "__setattr__": ("self, name, value", ["object.__setattr__(self, name, value)", "None"]),
    "__delattr__": ("self, name", ["None", "raise AttributeError(name)"]),
    "__index__": ("self", ["1", "0", "'a'", "1.5", "raise ValueError('ix')"]),
    "__int__": ("self", ["3", "'a'"]),
    "__float__": ("self", ["1.5", "'a'"]),
    "__str__": ("self", ["'str'", "5", "''"]),
    "__repr__": ("self", ["'repr'", "b'x'"]),
    "__format__": ("self, spec", ["'f' + spec", "5"]),
    "__enter__": ("self", ["self", "1"]),
    "__exit__": ("self, *a", ["True", "False", "None", "raise ValueError('exit')"]),
    "__neg__": ("self", ["-1", "self"]),
    "__abs__": ("self", ["4"]),
    "__round__": ("self, n=None", ["(n, 1)"]),
    "__divmod__": ("self, other", ["(1, 2)", "NotImplemented"]),
    "__rdivmod__": ("self, other", ["(3, 4)", "NotImplemented"]),
    "__reversed__": ("self", ["iter([9])", "5"]),
    "__length_hint__": ("self", ["3", "-1", "'a'", "NotImplemented"]),
    "__missing__": ("self, key", ["key", "raise LookupError(key)"]),
    "__copy__": ("self", ["'copied'"]),
    "__deepcopy__": ("self, memo", ["'deep'"]),
    "__class_getitem__": ("cls, item", ["item"]),
}
BASES = {
    "object": "",
    "int": "5",
    "float": "2.5",
    "str": "'abc'",
    "list": "[1, 2]",
    "dict": "{'a': 1}",
    "tuple": "(1, 2)",
    "set": "{1}",
    "collections.OrderedDict": "[('a', 1)]",
    "Exception": "'e'",
}
USES = [
    *(f"r = s {o} W" for o in OPERATORS + COMPARISONS[:6]),
    *(f"r = W {o} s" for o in OPERATORS + COMPARISONS),
    *(f"s {o}= W" for o in OPERATORS),
    *(f"r = {f}(s)" for f in ("len bool list tuple sorted str repr int float abs round next max sum any all dict set callable").split()),
    *("r = s[W]", "r = W in s", "r = s(W)", "r = f'{s}'", "r = f'{s!r:>6}'", "r = '%s' % (s,)", "r = format(s, 'x')", "r = -s"),
    *("r = divmod(s, W)", "r = divmod(W, s)", "r = pow(s, W)", "r = pow(s, 2, W)", "r = list(reversed(s))", "r = operator.length_hint(s)"),
    *("r = copy.copy(s)", "r = copy.deepcopy(s)", "r = s.x", "r = getattr(s, 'x', 3)", "r = hasattr(s, 'x')", "r = [*s]", "r = {**s}"),
    *("r = max(s, o)", "r = min(s, o, key=str)", "r = sum([s, o])", "r = list(zip(s, s))", "r = (lambda *p: p)(*s)", "r = {s: 1}[s]"),
    *("r = o in {s: 1}", "r = {1: 2}.get(s)", "r = [1, 2][s]", "r = [1, 2, 3][s:]", "r = [0] * s", "r = s * [0]", "r = s and 1", "r = not s"),
    *("r = [s] == [o]", "r = (s, 1) < (o, 2)", "r = [s, o].index(o)", "r = sorted([s, o])", "r = functools.reduce(operator.add, [s, o])"),
    *("r = isinstance(s, int)", "r = ','.join(s)", "r = ','.join([s])", "print(s)", "r = type(s)[int]", "r = bytes(s)", "r = range(s)"),
    *("s[0] = 1", "del s[0]", "s.x = 1", "del s.x", "with s as r: pass", "with s: raise KeyError('body')", "for r in s: break", "r, p = s"),
    *("raise s", "raise ValueError from s", "assert s", "assert s == o, s", "while s: break", "s.x += 1", "s[0] += 1"),
    "match s:\n    case [r, *_]: pass\n    case {'a': r}: pass\n    case int(): r = 1\n    case _: r = 9",
    "match s:\n    case 1: r = 1\n    case 'abc': r = 2",
]
WITH = ["1", "2.5", "'a'", "None", "[1]", "{}", "(1,)", "s", "o", "True", "-1"]


def class_text(rnd: random.Random, name: str, base: str) -> str:
    lines = [f"class {name}({base}):"]
    for method in rnd.sample(sorted(METHODS), rnd.choice([1, 2, 3, 4, 6, 8])):
        signature, answers = METHODS[method]
        answer = rnd.choice(answers)
        other = signature.split(", ")[1].split("=")[0] if "," in signature and "*" not in signature else "None"
        lines += [f"    def {method}({signature}):", f"        log.append(({name!r}, {method!r}, type({other}).__name__))"]
        lines.append(f"        {answer}" if answer.startswith("raise") else f"        return {answer}")
    return "\n".join(lines) + "\n"


# ---- programs --------------------------------------------------------------------------------------------------------

PROGRAM = """
{classes}
log = []
def make():
    return {made}
def probe(x, s, o):
    x = x + 1
{inside}    p = q = r = said = None
    try:
{body}
    except Exception as error:
        said = ("raised", type(error), {shown}, type(error.__context__), type(error.__cause__))
    return x, {results}, said
"""


@dataclasses.dataclass
class Operation:
    text: str

    @staticmethod
    def random(rnd: random.Random) -> Operation:
        given = rnd.random() < 0.5
        kind = rnd.random()
        if kind < 0.6:
            subject = rnd.choice(SUBJECTS + ARGUMENTS)
            body = expression(rnd, subject) if kind < 0.35 else rnd.choice(STATEMENTS)
            while "V" in body:
                body = body.replace("V", rnd.choice(ARGUMENTS), 1)
            made, classes, shown, results = f"{subject}, None", HELPERS, "said_by(error)", "s, p, q, r"
        else:
            base = rnd.choice(sorted(BASES))
            other = rnd.choice([base, "First"])
            classes = class_text(rnd, "First", base) + class_text(rnd, "Other", other)
            made, shown, results = f"First({BASES[base]}), Other({BASES[base]})", "len(error.args)", "type(r), type(s), type(p)"
            body = "\n".join(rnd.choice(USES) for _ in range(rnd.choice([1, 1, 1, 2])))
            while "W" in body:
                body = body.replace("W", rnd.choice(WITH), 1)
        inside = "" if given else f"    s, o = {made}\n"
        text = PROGRAM.format(
            classes=classes,
            made=made if given else "None, None",
            inside=inside,
            body=textwrap.indent(body, "        "),
            shown=shown,
            results=results,
        )
        return Operation(text)

    def run(self, captured: bool) -> list[Any]:
        scope = dict(NAMES) | {"__name__": "operation"}
        exec(compile(self.text, "<operation>", "exec"), scope)
        probe = cdynamo.compile(scope["probe"], backend="eager") if captured else scope["probe"]
        seen = []
        for _ in range(2):
            s, o = scope["make"]()
            scope["log"].clear()
            with contextlib.redirect_stdout(io.StringIO()) as output:
                result = probe(torch.ones(2), s, o)
            seen.append((result, output.getvalue(), list(scope["log"])))
        return seen

    def difference(self) -> str | None:
        """What eager and the captured program do not share; null: nothing."""
        cdynamo.reset()
        try:
            want = self.run(False)
        except Exception:
            return None  # the object cannot even be made
        try:
            with cdynamo.config.patch(strict=True):
                got = self.run(True)
            for number, (one, other) in enumerate(zip(want, got, strict=True)):
                Ordered().walk(one, other, f"call {number}")
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None


def is_told(text: str) -> bool:
    """Programs whose result is another one in each run, or takes long."""
    too_large = "10**18" in text and any(sign in text for sign in ("**=", "<<", "*", "pow", "shift", "perm", "comb", "factorial"))
    return not too_large and "nan" not in text.split("def make")[1]


def operations(seed: int, count: int) -> list[Operation]:
    rnd = random.Random(seed)
    found: list[Operation] = []
    while len(found) < count:
        operation = Operation.random(rnd)
        with contextlib.suppress(SyntaxError):
            compile(operation.text, "<operation>", "exec")
            if is_told(operation.text):
                found.append(operation)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=3000)
    arguments = parser.parse_args()
    wrong, events = 0, Events()
    with listening(events.record):
        for operation in operations(arguments.seed, arguments.count):
            if said := operation.difference():
                wrong += 1
                print(f"{operation.text}\n--> {said}\n", flush=True)
    print(f"operations: {arguments.count} programs, {wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
