"""Classes made in captured code by the machinery of the library: enums, typed tuples and dicts, dataclasses with slots, generics, ABCs."""

import abc
import collections
import copy
import dataclasses
import enum
import functools
import types
import typing
import weakref

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario

T = typing.TypeVar("T")


# ---- enums -------------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def enum_made(x):
    class Color(enum.Enum):
        RED = 1
        GREEN = 2

    return (
        x * Color.GREEN.value, Color.RED.name, Color(1) is Color.RED, Color["GREEN"].value, [c.name for c in Color], len(Color),
        Color.RED == Color.GREEN, Color.RED in Color, bool(Color), repr(Color), list(reversed(Color)) == [Color.GREEN, Color.RED],
    )  # fmt: skip


@scenario()
def enum_leaves():
    def f(x):
        class Color(enum.Enum):
            RED = 1
            GREEN = "g"

            def double(self):
                return self.value * 2

        return x + 1, Color.RED, Color, {Color.GREEN: 1}, [Color.RED, Color.RED]

    def after(result):
        member, cls, keyed, both = result[1:]
        return (
            member is cls.RED, cls(1) is member, cls["GREEN"] in keyed, both[0] is both[1], member.double(), list(cls), repr(member), len(cls),
            cls.__members__["GREEN"].name, outcome(lambda: cls(9)), outcome(lambda: setattr(cls, "RED", 2)), isinstance(member, enum.Enum),
            copy.deepcopy(member) is member, cls.__qualname__, cls.__module__, hash(member) == hash("RED"),
        )  # fmt: skip

    return Setup(f, lambda: (t(3),), after=lambda result: repr(after(result)))


@case(lambda: (t(3),))
def enum_with_auto(x):
    class C(enum.Enum):
        A = enum.auto()
        B = enum.auto()

    class S(enum.StrEnum):
        ONE = enum.auto()
        TWO = "two!"

    return x + C.B.value, repr(C.A), str(C.B), S.ONE.value, str(S.TWO), f"{S.ONE}", S("two!") is S.TWO


@case(lambda: (t(3),))
def int_enum_made(x):
    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 3

    return x * Level.HIGH, Level.LOW < Level.HIGH, Level.LOW + 1, [v.name for v in sorted(Level)], int(Level.HIGH), max(Level).name, [5, 6][Level.LOW]


@case(lambda: (t(3),))
def flag_made(x):
    class P(enum.Flag):
        R = 1
        W = 2
        RW = R | W

    v = P.R | P.W
    return x * v.value, P.R in v, bool(v & P.W), ~P.R == P.W, repr(v), v is P.RW, P(0), len(list(v)), outcome(lambda: P(8)), P.R ^ P.RW == P.W


@case(lambda: (t(3),))
def int_flag_made(x):
    class P(enum.IntFlag):
        R = 1
        W = 2

    return x * int(P.R | P.W), (P.R | 4).value, P.R & 3 == P.R, P(3) == 3


@case(lambda: (t(3),))
def enum_with_methods(x):
    class M(enum.Enum):
        RELU = "relu"
        TANH = "tanh"

        def apply(self, x):
            return torch.relu(x) if self is M.RELU else torch.tanh(x)

        @classmethod
        def default(cls):
            return cls.TANH

        @property
        def upper(self):
            return self.value.upper()

        @staticmethod
        def none():
            return 0

    return M.RELU.apply(x), M.default().apply(x), M.RELU.upper, M.none()


@case(lambda: (t(3),))
def enum_with_init(x):
    class Planet(enum.Enum):
        EARTH = (5.0, 6.0)
        MARS = (3.0, 2.0)

        def __init__(self, mass, radius):
            self.mass = mass
            self.radius = radius

        @property
        def g(self):
            return self.mass / self.radius

    return x * Planet.MARS.g, Planet.EARTH.mass, Planet.EARTH.value, Planet((3.0, 2.0)).name


@case(lambda: (t(3),))
def enum_with_new(x):
    class Coordinate(bytes, enum.Enum):
        def __new__(cls, value, label):
            obj = bytes.__new__(cls, [value])
            obj._value_ = value
            obj.label = label
            return obj

        PX = (0, "P.X")
        PY = (1, "P.Y")

    return x + Coordinate.PY.value, Coordinate.PX.label, Coordinate(1) is Coordinate.PY, bytes(Coordinate.PY)


@case(lambda: (t(3),))
def enum_of_texts(x):
    class C(str, enum.Enum):
        A = "a"
        B = "b"

    return x + 1, C.A == "a", C("b").name, {"a": 5}[C.A], C.A.upper(), C.A + C.B, isinstance(C.A, str), [c.value for c in C]


@case(lambda: (t(3),))
def enum_aliases(x):
    @enum.unique
    class U(enum.Enum):
        A = 1
        B = 2

    class C(enum.Enum):
        A = 1
        B = 1

    def repeated():
        @enum.unique
        class V(enum.Enum):
            A = 1
            B = 1

        return V

    return x + U.B.value, C.B is C.A, list(C.__members__), [c.name for c in C], outcome(repeated)


@case(lambda: (t(3),))
def enum_refuses(x):
    class C(enum.Enum):
        A = 1

    def twice():
        class D(enum.Enum):
            A = 1
            A = 2  # noqa: PIE794

    def derived():
        class D(C):
            B = 2

    def rebound():
        C.A = 3

    def deleted():
        del C.A

    return x + 1, outcome(lambda: C(5)), outcome(lambda: C["Q"]), outcome(twice), outcome(derived), outcome(rebound), outcome(deleted)


@case(lambda: (t(3),))
def enum_hooks(x):
    class C(enum.Enum):
        def _generate_next_value_(name, start, count, last):
            return name.lower()

        @classmethod
        def _missing_(cls, value):
            return cls.A if value == "first" else None

        A = enum.auto()
        B = enum.auto()

    return x + 1, C.B.value, C("first") is C.A, outcome(lambda: C("q"))


@case(lambda: (t(3),))
def enum_as_keys(x):
    class C(enum.Enum):
        A = 1
        B = 2

    d = {C.A: x, C.B: x + 1}

    def number(c):
        match c:
            case C.A:
                return 1
            case C.B:
                return 2

    return d[C.B] * number(C.B), C.A in d, {C.A, C.B, C.A} == {C.B, C.A}, number(C.A)


@case(lambda: (t(3),), skip="UserBreak")
def enum_over_a_break(x):
    class C(enum.IntEnum):
        A = 1
        B = 2

    member = C.B
    y = x * member
    torch._dynamo.graph_break()
    return y + member, member is C.B, C(1).name, [c.name for c in C], len(C)


@case(lambda: (t(3),))
def enum_nested(x):
    class Outer:
        class Mode(enum.Enum):
            TRAIN = "train"
            EVAL = "eval"

        mode = Mode.EVAL

    return x * (2 if Outer.mode is Outer.Mode.EVAL else 3), Outer.mode.name, Outer.Mode.__qualname__


# ---- named tuples and typed dicts ------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def typed_named_tuple(x):
    class P(typing.NamedTuple):
        a: torch.Tensor
        b: int = 3

        def total(self):
            return self.a + self.b

    p = P(x)
    return p.total(), p.b, p._replace(b=4).b, p._asdict()["b"], P._fields, p[1], len(p), P.__annotations__, P._field_defaults, P(1, 2) == (1, 2)


@scenario()
def typed_named_tuple_leaves():
    def f(x):
        class P(typing.NamedTuple):
            """Doc."""

            a: int
            b: str = "z"

            @property
            def both(self):
                return self.b * self.a

        return x + 1, P(2), P

    return Setup(f, lambda: (t(3),), after=lambda r: (r[1].both, r[2](3, "q"), r[2].__doc__, r[2].__annotations__, repr(r[1]), r[2].__bases__))


@case(lambda: (t(3),))
def typed_named_tuple_refuses(x):
    def order():
        class P(typing.NamedTuple):
            a: int = 1
            b: int

        return P

    def taken():
        class P(typing.NamedTuple):
            a: int
            _fields = 1

        return P

    return x + 1, outcome(order), outcome(taken), typing.NamedTuple("Q", [("a", int), ("b", int)])(1, 2).b


@case(lambda: (t(3),))
def named_tuple_subclass(x):
    class P(collections.namedtuple("B", "a b")):
        __slots__ = ()

        def product(self):
            return self.a * self.b

    return P(x, 3).product(), P(x, 3), P._make([1, 2]).product(), P(1, 2) < P(1, 3)


@case(lambda: (t(3),))
def typed_dicts(x):
    class D(typing.TypedDict):
        a: int
        b: str

    class E(D, total=False):
        c: int

    d = D(a=1, b="x")
    e: E = {"a": 3, "b": "y"}
    return (
        x * e["a"] + d["a"], type(d) is dict, D.__annotations__, sorted(E.__required_keys__), sorted(E.__optional_keys__), D.__total__,
        outcome(lambda: isinstance(d, D)),
    )  # fmt: skip


# ---- dataclasses with slots ------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def slotted_dataclass(x):
    @dataclasses.dataclass(slots=True)
    class P:
        a: torch.Tensor
        b: int = 2
        c: list = dataclasses.field(default_factory=list)

    p = P(x)
    p.b += 1
    p.c.append(1)

    def other():
        p.q = 1

    return p.a * p.b, hasattr(p, "__dict__"), P.__slots__, p.c, outcome(other), [f.name for f in dataclasses.fields(P)], P(1) == P(1), repr(P(1))


@case(lambda: (t(3),))
def slotted_dataclass_leaves(x):
    @dataclasses.dataclass(slots=True, frozen=True, order=True)
    class P:
        a: torch.Tensor
        b: int = 2

    def write():
        P(1).b = 3

    return P(x + 1), P(x).b, outcome(write), P(1) < P(2), hash(P(1)) == hash(P(1)), dataclasses.replace(P(1), b=5).b, P.__qualname__


@case(lambda: (t(3),))
def slotted_dataclass_weakly_held(x):
    @dataclasses.dataclass(slots=True, weakref_slot=True)
    class P:
        a: int

    p = P(2)
    r = weakref.ref(p)
    return x * r().a, r() is p, weakref.ref(p) is r


@case(lambda: (t(3),))
def slotted_dataclass_derived(x):
    @dataclasses.dataclass(slots=True)
    class A:
        a: int = 1

    @dataclasses.dataclass(slots=True)
    class B(A):
        b: int = 2

        def total(self):
            return self.a + self.b

    return x * B(b=4).total(), B.__slots__, B(3), isinstance(B(), A), copy.copy(B(7)).a


@case(lambda: (t(3),), skip="ClassStatement")
def slotted_dataclass_with_computed_default(x):
    @dataclasses.dataclass(slots=True)
    class P:
        a: object = x

    return P().a + 1


# ---- metaclasses ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def prepared_by_a_mapping(x):
    class Names(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            if not key.startswith("_"):
                self.setdefault("_order", []).append(key)

        def __missing__(self, key):
            if key.startswith("made_"):
                return key.upper()
            raise KeyError(key)

    class Meta(type):
        @classmethod
        def __prepare__(meta, name, bases):
            return Names()

        def __new__(meta, name, bases, names):
            return super().__new__(meta, name, bases, dict(names))

    class A(metaclass=Meta):
        b = 1
        a = made_up  # noqa: F821
        c: int = 2
        del b

    return x * A.c, A._order, A.a, hasattr(A, "b"), A.__annotations__


@case(lambda: (t(3),))
def metaclass_special_methods(x):
    class Meta(type):
        def __len__(cls):
            return cls.size

        def __bool__(cls):
            return cls.size > 1

        def __contains__(cls, item):
            return item == cls.size

        def __repr__(cls):
            return f"<{cls.__name__}>"

        def __iter__(cls):
            return iter(range(cls.size))

        def __getitem__(cls, key):
            return key * cls.size

    class A(metaclass=Meta):
        size = 2

    class B(metaclass=Meta):
        size = 1

    return x * len(A), bool(A), bool(B), 2 in A, 3 in A, repr(A), str(B), f"{A}", list(A), A[4], (1 if B else 2)


@case(lambda: (t(3),))
def metaclass_writes(x):
    class Meta(type):
        def __setattr__(cls, name, value):
            super().__setattr__(name, value * 2)

        def __delattr__(cls, name):
            type.__setattr__(cls, "gone", name)
            super().__delattr__(name)

    class A(metaclass=Meta):
        a = 1

    A.b = 3
    A.a = 5
    del A.b
    return x * A.a, hasattr(A, "b"), A.gone


@case(lambda: (t(3),))
def texts_of_classes_set(x):
    class A:
        pass

    A.__name__ = "Other"
    A.__qualname__ = "Some.Other"
    A.__doc__ = "Doc."
    return x + 1, A.__name__, A.__qualname__, A.__doc__, A


@case(lambda: (t(3),))
def entries_of_other_bases(x):
    class Stand:
        def __mro_entries__(self, bases):
            return (dict,)

    class Nothing:
        def __mro_entries__(self, bases):
            return ()

    stand = Stand()

    class A(stand, Nothing()):
        pass

    class Bad:
        def __mro_entries__(self, bases):
            return [dict]

    def bad():
        class B(Bad()):
            pass

    return x + 1, A.__bases__, A.__orig_bases__[0] is stand, isinstance(A(), dict), outcome(bad), types.resolve_bases((stand, int)), A(q=1)


@case(lambda: (t(3),))
def generic_class(x):
    class Box(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    class IntBox(Box):
        pass

    return x * Box(3).v, Box.__parameters__, Box.__orig_bases__, issubclass(IntBox, typing.Generic), IntBox(2).v, Box


@case(lambda: (t(3),), skip="UnsupportedIndexing")
def generic_class_over_a_break(x):
    class Box(typing.Generic[T]):
        def __init__(self, v):
            self.v = v

    return x * Box[int](3).v, Box.__orig_bases__


@case(lambda: (t(3),))
def type_with_keywords(x):
    class Base:
        def __init_subclass__(cls, tag=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.tag = tag

    class Meta(type):
        def __new__(meta, name, bases, names, **kwargs):
            return super().__new__(meta, name, bases, names, **kwargs)

    A = type("A", (Base,), {}, tag=5)
    B = types.new_class("B", (Base,), {"tag": 6})
    return x * A.tag, B.tag, A.__mro__[1] is Base, outcome(lambda: type("C", (), {}, tag=1))


# ---- abstract base classes -------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def derived_abc_meta(x):
    class Meta(abc.ABCMeta):
        registry = []

        def __new__(meta, name, bases, names, **kwargs):
            cls = super().__new__(meta, name, bases, names, **kwargs)
            meta.registry.append(name)
            cls.z = 3
            return cls

    class A(metaclass=Meta):
        @abc.abstractmethod
        def f(self): ...

        @property
        @abc.abstractmethod
        def p(self): ...

    class B(A):
        p = 4

        def f(self):
            return 2

    return x * B().f() * B.z, outcome(A), Meta.registry, isinstance(B(), A), sorted(A.__abstractmethods__)


@scenario()
def derived_abc_meta_leaves():
    def f(x):
        class Meta(abc.ABCMeta):
            pass

        class A(metaclass=Meta):
            @abc.abstractmethod
            def f(self): ...

        class B(A):
            def f(self):
                return x * 2

        return B().f(), A, B

    return Setup(f, lambda: (t(3),), after=lambda r: (outcome(r[1]), issubclass(r[2], r[1]), isinstance(r[2](), r[1]), issubclass(int, r[1])))


@case(lambda: (t(3),))
def registered_inside(x):
    class A(abc.ABC):
        pass

    class B:
        pass

    @A.register
    class C:
        pass

    before = isinstance(B(), A)
    given = A.register(B)
    return x + 1, before, isinstance(B(), A), issubclass(C, A), given is B, isinstance(3, A), outcome(lambda: A.register(3))


# ---- functions for classes -------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def ordered_totally(x):
    @functools.total_ordering
    class A:
        def __init__(self, v):
            self.v = v

        def __lt__(self, other):
            return self.v < other.v

        def __eq__(self, other):
            return self.v == other.v

    return x + 1, A(1) <= A(2), A(3) >= A(2), A(1) > A(0), max(A(1), A(5)).v, sorted([A(2), A(1)])[0].v, A(1) != A(2)


@case(lambda: (t(3),))
def dispatched_inside(x):
    @functools.singledispatch
    def f(v):
        return 1

    @f.register
    def _(v: int):
        return 2

    @f.register(str)
    def _(v):
        return 3

    @f.register(list)
    @f.register(tuple)
    def _(v):
        return len(v) + f(v[0])

    return x * f(1) + f("a") + f(2.0), f([1, 2]), f(("a",)), f(True), f.dispatch(int)(1), len(f.registry)


@case(lambda: (t(3),))
def method_dispatched_inside(x):
    class A:
        @functools.singledispatchmethod
        def f(self, v):
            return 1

        @f.register
        def _(self, v: int):
            return 2

        @f.register(torch.Tensor)
        def _(self, v):
            return v * 3

    return A().f(x), A().f(1), A().f("s")


# ---- weak references to what is made inside --------------------------------------------------------------------------------


@case(lambda: (t(3),))
def reference_to_made(x):
    class A:
        __slots__ = ("a", "__weakref__")

    a = A()
    a.a = 3
    r = weakref.ref(a)

    def inner():
        return r().a

    return x * inner(), r() is a, r is weakref.ref(a), r == weakref.ref(a), a


@case(lambda: (t(3),), skip="UnknownFunction")
def reference_to_dropped(x):
    class A:
        pass

    a = A()
    r = weakref.ref(a)
    held = [a]
    del a
    first = r() is held[0]
    held.clear()
    return x + 1, first, r()


@scenario()
def references_leave():
    class A:
        pass

    def f(x):
        a, b = A(), A()
        return x + 1, a, weakref.ref(a), weakref.ref(b)

    return Setup(f, lambda: (t(3),), after=lambda r: (r[2]() is r[1], r[3]()))


# ---- objects with __del__ --------------------------------------------------------------------------------------------------

died = []


class WithDel:
    def __init__(self, n):
        self.n = n

    def __del__(self):
        died.append(self.n)

    def scaled(self, x):
        return x * self.n


@case(lambda: (t(3),), skip="FinalizerClass")
def finalizers_in_order(x):
    order = []

    class A:
        def __init__(self, n):
            self.n = n

        def __del__(self):
            order.append(self.n)

    a = A(1)
    order.append("before")
    del a
    order.append("after")
    A(2)
    order.append("end")
    return x + 1, order


@case(lambda: (t(3),), skip="FinalizerClass")
def finalizers_of_locals(x):
    died.clear()
    a = WithDel(1)
    died.append("x")
    a = WithDel(2)
    died.append("y")

    def inner():
        b = WithDel(3)
        return x * b.n

    y = inner()
    died.append("z")
    return y * a.n, list(died)


@case(lambda: (t(3),), skip="FinalizerClass")
def finalizers_of_temporaries(x):
    died.clear()
    y = WithDel(2).scaled(x)
    died.append("a")
    n = WithDel(5).n
    died.append("b")
    held = [WithDel(6)]
    died.append("c")
    return y * n, list(died), len(held)


@scenario(skip="FinalizerClass")
def finalizer_leaves():
    def f(x):
        died.clear()
        return x + 1, WithDel(4)

    return Setup(f, lambda: (t(3),), after=lambda r: list(died))


test = cases.as_test(__name__)
