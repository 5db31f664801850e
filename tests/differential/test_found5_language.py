"""eval and exec of constant text, containers of collections, special methods by which objects take part in the language."""

from __future__ import annotations

import collections
import copy
import copyreg
import functools
import inspect
import numbers
import operator
import os
import string
import sys
import types
import typing

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- eval and exec -----------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def evaluated_in_a_dict(x):
    names = {"n": 3, "x": x}
    return eval("x * 2 + n", names), sorted(names), eval("d['a']", {"d": {"a": 3}}), eval("len('abc')", {})


@case(lambda: (t(3),))
def evaluated_in_the_function(x):
    n = 4
    return (
        eval("x * n") + eval(" n"),
        eval("__name__"),
        eval("max(1, 2)", None, {"max": min}),
        eval("[v * 2 for v in (1, 2)]"),
        eval("sorted(locals())"),
    )


@case(lambda: (t(3),))
def evaluated_in_the_module(x):
    return eval("torch.relu(x)", globals(), {"x": x}), eval("(lambda a: a * 2)", globals())(x), eval("outcome", globals()) is outcome


@case(lambda: (t(3),))
def compiled_and_evaluated(x):
    code = compile("a + 1", "<s>", "eval")
    return x * eval(code, {"a": 2}), code.co_names, code.co_filename, eval(code, {}, {"a": 5})


@case(lambda: (t(3),))
def evaluation_refuses(x):
    return x + 1, [outcome(lambda: eval(text)) for text in ("1 +", "1 / 0", "nope", "x[", "(yield)")], outcome(lambda: exec("raise KeyError(3)", {}))


@case(lambda: (t(3),))
def executed_in_a_dict(x):
    names = {"x": x, "k": 0}
    exec("for i in range(3):\n    k += i\n    x = x + k\ny = x * 2", names)
    return names["x"], names["k"], names["i"], names["y"], sorted(names)


@case(lambda: (t(3),))
def executed_with_locals(x):
    names = {"x": x}
    exec("class A:\n    v = 3\ndef f(a, b=2):\n    return a * b", globals(), names)
    exec("import math\nq = math.sqrt(4)", names)
    return names["f"](x) * names["A"].v, names["q"], sorted(names)


@case(lambda: (t(3),))
def executed_for_its_effects(x):
    seen = []
    exec("seen.append(3)")
    exec("global EXECUTED\nEXECUTED = 5", globals())
    y = x * EXECUTED  # noqa: F821
    exec("del EXECUTED", globals())
    return y, seen, "EXECUTED" in globals()


@case(lambda: (t(3),), skip="UnknownFunction")
def executed_definition_in_a_dict(x):
    names = {}
    exec("def f(a, b=2):\n    return a * b", names)
    return names["f"](x)


@case(lambda: (t(3),), skip="UnknownFunction")
def evaluated_without_builtins(x):
    return x + 1, outcome(lambda: eval("len('a')", {"__builtins__": {}}))


class Forward:
    a: int
    b: typing.Optional[Forward]


@case(lambda: (t(3),))
def forward_references(x):
    return x + 1, typing.get_type_hints(Forward), Forward.__annotations__


# ---- collections -------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def bounded_deque(x):
    d = collections.deque([1, 2, 3], maxlen=2)
    d.append(4)
    d.appendleft(0)
    d.rotate(1)
    e = d + collections.deque([9])
    return x * sum(d), d, d.maxlen, list(reversed(d)), d.copy(), e, e.maxlen, d.index(0), outcome(lambda: d.insert(0, 1)), d == collections.deque(d)


@case(lambda: (t(3),))
def counters(x):
    a, b = collections.Counter("abca"), collections.Counter(a=1, z=2)
    c = a.copy()
    c.update([1, 1, "a"])
    c.subtract({1: 5})
    return x * a["a"], a + b, a - b, a & b, a | b, a.most_common(1), +a, -b, a.total(), list(a.elements()), a["nope"], a <= b, c, repr(b)


@case(lambda: (t(3),))
def chain_maps(x):
    a, b = {"a": 1}, {"a": 2, "b": 3}
    c = collections.ChainMap(a, b)
    c["z"] = x + 1
    child = c.new_child({"q": 1})
    return x * c["b"], a, list(c), len(c), child["a"], c.parents["a"], "b" in c, c.get("nope"), child.maps, outcome(lambda: c.pop("b")), c | {"k": 1}


@case(lambda: (t(3),))
def user_containers(x):
    class D(collections.UserDict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value * 2)

    d = D({"a": 1}, b=2)
    d["c"] = x
    numbered = collections.UserList([3, 1, 2])
    numbered += [5]
    numbered.sort(reverse=True)
    s = collections.UserString("abc")
    return d["c"] + 1, d.data, len(d), d | {"y": 1}, numbered[1:3], numbered.index(2), numbered == [5, 3, 2, 1], s.upper() + "d", s == "abc", "b" in s


# ---- the language's own hooks ----------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def class_hooks(x):
    class Field:
        def __set_name__(self, owner, name):
            self.name, self.owner = name, owner.__name__

        def __get__(self, instance, owner=None):
            return self.name, self.owner

    class A:
        field = Field()

        def __class_getitem__(cls, key):
            return cls.__name__, key

    class Meta(type):
        def __instancecheck__(cls, instance):
            return instance == 3

        def __subclasscheck__(cls, sub):
            return sub is int

    class B(metaclass=Meta):
        pass

    return x + 1, A().field, A.field, A[int], A["q", 1], isinstance(3, B), isinstance(4, B), issubclass(int, B), issubclass(str, B)


class Registered:
    def __init__(self, v):
        self.v = v


copyreg.pickle(Registered, lambda o: (Registered, (o.v * 10,)))


@case(lambda: (t(3),))
def copied_by_reduction(x):
    class A:
        def __init__(self, v):
            self.v = v

        def __reduce__(self):
            return (A, (self.v + 1,))

    class State:
        def __init__(self):
            self.a, self.b = 1, 2

        def __getstate__(self):
            return {"a": 9}

        def __setstate__(self, state):
            self.__dict__.update(state, z=3)

    s = copy.copy(State())
    return x * copy.copy(A(1)).v, copy.deepcopy(A(5)).v, copy.copy(Registered(2)).v, s.a, s.z, hasattr(s, "b")


@case(lambda: (t(3),))
def namespaces_of_objects(x):
    class A:
        pass

    a, d = A(), {"v": 3}
    vars(a)["x"] = 1
    a.__dict__.update(z=x + 1)
    before = vars(a)
    a.__dict__ = d
    d["w"] = 4
    a.u = 5
    return before["z"], sorted(before), a.v, a.w, vars(a) is d, d, hasattr(a, "x")


@case(lambda: (t(3),))
def classes_of_objects(x):
    class A:
        def f(self):
            return 1

    class B:
        def f(self):
            return 2

    class C:
        __slots__ = ("q",)

    a = A()
    a.z = 3
    a.__class__ = B

    def unlike():
        a.__class__ = C

    return x * a.f(), type(a) is B, a.z, isinstance(a, A), outcome(unlike), a


@case(lambda: (t(3),))
def numeric_hooks(x):
    class N:
        def __round__(self, n=None):
            return ("r", n)

        def __trunc__(self):
            return 4

        def __floor__(self):
            return 5

        def __ceil__(self):
            return 6

        def __index__(self):
            return 2

        def __divmod__(self, other):
            return ("d", other)

        def __rdivmod__(self, other):
            return ("rd", other)

        def __matmul__(self, other):
            return ("m", other)

        def __imatmul__(self, other):
            return ("im", other)

        def __pow__(self, other, mod=None):
            return ("p", other, mod)

    import math

    n = a = N()
    a @= 2
    return (
        x + 1,
        round(n),
        round(n, 2),
        math.trunc(n),
        math.floor(n),
        math.ceil(n),
        [1, 2, 3][n],
        hex(n),
        divmod(n, 2),
        divmod(2, n),
        n @ 3,
        a,
        pow(n, 2, 3),
    )


@case(lambda: (t(3),))
def matched_by_position(x):
    class P:
        __match_args__ = ("a", "b")

        def __init__(self, a, b):
            self.a, self.b = a, b

    def bad(v):
        match v:
            case P(1, 2, 3):
                return 0

    match P(1, x):
        case P(2, y):
            found = 0
        case P(1, y) if y is x:
            found = y * 2
    return found, outcome(lambda: bad(P(1, 2)))


module = types.ModuleType("found5_dynamic")


def _module_getattr(name):
    if name == "dyn":
        return 5
    raise AttributeError(f"no {name}")


module.__getattr__ = _module_getattr


@scenario(after_change=(1,))
def module_attributes_on_demand():
    def f(x):
        return x * module.dyn, outcome(lambda: module.nope), getattr(module, "w", 3)

    def appear():
        module.w = 4

    def cleanup():
        module.__dict__.pop("w", None)

    return Setup(f, lambda: (t(3),), changes=[appear], cleanup=cleanup)


@scenario(after_change=(1, 1))
def environment_is_guarded():
    os.environ.pop("FOUND5", None)

    def f(x):
        return x + 1, os.environ.get("FOUND5"), os.getenv("FOUND5", "d"), "FOUND5" in os.environ

    def put():
        os.environ["FOUND5"] = "1"

    def change():
        os.environ["FOUND5"] = "2"

    def cleanup():
        os.environ.pop("FOUND5", None)

    return Setup(f, lambda: (t(3),), changes=[put, change], cleanup=cleanup)


@scenario(skip="UnknownFunction")
def environment_is_written():
    def f(x):
        os.environ["FOUND5W"] = "1"
        found = os.environ["FOUND5W"]
        del os.environ["FOUND5W"]
        return x + 1, found, os.environ.get("FOUND5W")

    return Setup(f, lambda: (t(3),), watch=lambda: "FOUND5W" in os.environ)


@case(lambda: (t(3),))
def towers_of_numbers(x):
    return (
        x + 1,
        isinstance(1, numbers.Number),
        isinstance(1.5, numbers.Integral),
        isinstance(True, numbers.Integral),
        issubclass(float, numbers.Real),
        isinstance(x, numbers.Number),
    )


@case(lambda: (t(3),))
def typing_constructs(x):
    a, b, c = typing.List[int], typing.Optional[str], typing.Union[int, str]
    return (
        x + 1, typing.get_origin(a), typing.get_args(typing.Dict[str, int]), typing.get_args(b), isinstance(1, int | str), c == typing.Union[int, str],
        typing.get_args(typing.Literal[1, 2]), typing.get_args(typing.Callable[[int], str]), typing.get_origin(list[int]), typing.NamedTuple("N", [("a", int)])(1).a,
    )  # fmt: skip


@case(lambda: (t(3),))
def static_lookups(x):
    class A:
        v = 1

        @property
        def p(self):
            return 2

        def f(self):
            pass

    return (
        x + 1,
        inspect.getattr_static(A(), "v"),
        type(inspect.getattr_static(A, "p")),
        inspect.isfunction(A.f),
        inspect.ismethod(A().f),
        inspect.getattr_static(A(), "zz", 5),
        inspect.getmro(A),
    )


@case(lambda: (t(3),))
def texts_of_constants(x):
    return (
        x + 1,
        string.capwords("hello world"),
        string.ascii_letters[:3],
        sys.version_info >= (3, 8),
        operator.attrgetter("a.b")(types.SimpleNamespace(a=types.SimpleNamespace(b=4))),
    )


@case(lambda: (t(3),))
def partial_methods(x):
    class A:
        def f(self, a, b):
            return a * b

        g = functools.partialmethod(f, b=3)

    return A().g(x), functools.reduce(operator.add, [1, 2], 3)


test = cases.as_test(__name__)
