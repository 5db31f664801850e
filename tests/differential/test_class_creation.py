"""Classes made inside captured code: class statements, type() with three arguments, metaclasses, hooks, decorators, library factories."""

import abc
import collections
import dataclasses
import enum
import functools
import sys
import typing

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario
REGISTRY: list[str] = []


class Plain:
    base = 3

    def scale(self, x):
        return x * self.base


class Registered:
    def __init_subclass__(cls, /, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        REGISTRY.append(tag or cls.__name__)


class Named:
    def __set_name__(self, owner, name):
        self.owner, self.name = owner.__name__, name

    def __get__(self, obj, owner=None):
        return self if obj is None else obj.__dict__.get("_" + self.name, 5)

    def __set__(self, obj, value):
        obj.__dict__["_" + self.name] = value


class Upper(type):
    def __new__(mcls, name, bases, namespace, **kw):
        namespace = {k: v for k, v in namespace.items()}
        namespace["made_by"] = f"{mcls.__name__}:{name}:{sorted(kw)}"
        return super().__new__(mcls, name, bases, namespace)

    def __init__(cls, name, bases, namespace, **kw):
        super().__init__(name, bases, namespace)
        cls.kw = kw

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.called = True
        return made


class Prepared(type):
    @classmethod
    def __prepare__(mcls, name, bases, **kw):
        return {"given": name.lower()}


# ---- class statements ------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def class_used_inside(x):
    class Scaler:
        factor = 2

        def __init__(self, k):
            self.k = k

        def __call__(self, x):
            return x * self.k * self.factor

    return Scaler(3)(x)


@case(lambda: (t(3),))
def class_with_closure(x):
    k = 4

    class Scaler:
        def run(self, y):
            return y * k + x

    return Scaler().run(x)


@case(lambda: (t(3),))
def class_body_reads_closure(x):
    k = 4
    shift = x + 1

    class Holder:
        doubled = k * 2
        tensor = shift

    return x * Holder.doubled + Holder.tensor


@case(lambda: (t(3),))
def class_body_scopes(x):
    k = 1

    class A:
        j = k + 1
        items = [k for _ in range(2)]
        total = 0
        for i in range(3):
            total += i
        if total > 2:
            flag = True
        del i

        def get(self):
            return k

    return x * A.j + A.total, A.items, A.flag, A().get(), hasattr(A, "i")


@case(lambda: (t(3),))
def class_returned_is_fresh(x):
    class Made:
        value = 1

    return x + Made.value, Made, Made()


@scenario()
def classes_differ_per_call():
    seen = []

    def f(x):
        class Made:
            pass

        seen.append(Made)
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: (len(seen), len(set(seen))))


@case(lambda: (t(3),))
def instance_of_local_class_returned(x):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    p = Pair(x + 1, [2])
    return p, type(p), p.b


@case(lambda: (t(3),))
def class_inherits_existing(x):
    class Child(Plain):
        base = 7

        def scale(self, x):
            return super().scale(x) + 1

    return Child().scale(x), Child.__mro__[1] is Plain, issubclass(Child, Plain), isinstance(Child(), Plain)


@case(lambda: (t(3),))
def local_class_hierarchy(x):
    class A:
        def f(self, x):
            return [x + 1]

    class B(A):
        def f(self, x):
            return [*super().f(x), x * 2]

    class C(A):
        def f(self, x):
            return [*super().f(x), x * 3]

    class D(B, C):
        def f(self, x):
            return [*super().f(x), x * 4]

    return D().f(x), [c.__name__ for c in D.__mro__]


@case(lambda: (t(3),))
def class_cell_zero_argument(x):
    class A:
        def who(self):
            return __class__.__name__

        @classmethod
        def make(cls):
            return __class__ is cls

        def nested(self):
            def inner():
                return __class__.__qualname__

            return inner()

    return x + 1, A().who(), A.make(), A().nested()


@case(lambda: (t(3),))
def class_attributes_names(x):
    class Named2:
        """Doc."""

        a: int = 1
        b: str

        def m(self): ...

    return (
        x + 1,
        Named2.__name__,
        Named2.__qualname__,
        Named2.__module__,
        Named2.__doc__,
        dict(Named2.__annotations__),
        Named2.m.__qualname__,
        Named2.__dict__["a"],
    )


@case(lambda: (t(3),))
def class_decorators_methods(x):
    def tagged(cls):
        cls.tag = cls.__name__ + "!"
        return cls

    @tagged
    class A:
        def __init__(self, v):
            self._v = v

        @property
        def v(self):
            return self._v * 2

        @v.setter
        def v(self, new):
            self._v = new

        @classmethod
        def make(cls, v):
            return cls(v)

        @staticmethod
        def add(a, b):
            return a + b

    a = A.make(x)
    first = a.v
    a.v = x + 1
    return A.add(first, a.v), A.tag


@case(lambda: (t(3),))
def class_operators_inside(x):
    class V:
        def __init__(self, v):
            self.v = v

        def __add__(self, o):
            return V(self.v + (o.v if isinstance(o, V) else o))

        __radd__ = __add__

        def __matmul__(self, o):
            return (self.v * o.v).sum()

        def __eq__(self, o):
            return isinstance(o, V) and self.v is o.v

        __hash__ = None

        def __len__(self):
            return 3

        def __getitem__(self, i):
            return self.v[i]

        def __repr__(self):
            return "V!"

    a, b = V(x), V(x * 2)
    return (a + b + 1).v, a @ b, a == b, a != b, len(a), a[0], list(a)[1], repr(a)


@case(lambda: (t(3),))
def class_with_slots_inside(x):
    class S:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    s = S(x + 1)
    try:
        s.c = 1
        r = "set"
    except AttributeError as e:
        r = str(e)
    return s.a, hasattr(s, "b"), r, s


@case(lambda: (t(3),))
def class_attribute_changed_inside(x):
    class Counter:
        n = 0
        items: list = []

        def bump(self):
            type(self).n += 1
            Counter.items.append(self.n)
            return self

    Counter().bump().bump()
    Counter.extra = 5
    del Counter.extra
    return x * Counter.n, Counter.items, hasattr(Counter, "extra")


@case(lambda: (t(3),))
def class_in_loop(x):
    out = []
    for i in range(3):

        class K:
            n = i

            def go(self, y):
                return y + self.n

        out.append(K)
    return [k().go(x) for k in out]


@case(lambda: (t(3),))
def class_keeps_tensor_method_default(x):
    y = x * 2

    class K:
        def go(self, z=y, *, w=x):
            return z + w

    return K().go(), K().go(1)


@case(lambda: (t(3),))
def class_statement_raises(x):
    try:

        class Bad(int, str):
            pass

    except TypeError as e:
        return x + 1, str(e)


@case(lambda: (t(3),))
def class_body_raises(x):
    try:

        class Bad:
            a = 1 // 0

    except ZeroDivisionError as e:
        return x + 1, str(e)


@case(lambda: (t(3),))
def class_body_with_tensor_ops(x):
    class Constants:
        a = x + 1
        b = a * 2

    return Constants.b.sum() + Constants.a


@case(lambda: (t(3),))
def class_instance_in_dict_key(x):
    class Key:
        pass

    a, b = Key(), Key()
    d = {a: x + 1, b: x + 2}
    return d[a], d[b], Key() in d


@case(lambda: (t(3),))
def generator_method_inside(x):
    class G:
        def __init__(self, n):
            self.n = n

        def __iter__(self):
            for i in range(self.n):
                yield x + i

    return list(G(3)), sum(G(2))


@case(lambda: (t(3),))
def context_manager_inside(x):
    log = []

    class CM:
        def __enter__(self):
            log.append("in")
            return self

        def __exit__(self, *exc):
            log.append(exc[0] and exc[0].__name__)
            return True

    with CM():
        y = x + 1
        raise ValueError
    return y, log


@case(lambda: (t(3),))
def exception_class_inside(x):
    class MyError(ValueError):
        def __init__(self, code):
            super().__init__(f"code {code}")
            self.code = code

    try:
        raise MyError(4)
    except MyError as e:
        return x + e.code, str(e), type(e).__name__, isinstance(e, ValueError)


@case(lambda: (t(3),))
def exception_class_escapes(x):
    class MyError(ValueError):
        pass

    y = x + 1
    raise MyError("out", 3)


@case(lambda: (t(2, 3),))
def module_class_inside(x):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 3

        def forward(self, x):
            return torch.relu(x) * self.k

    return Net()(x)


@case(lambda: (t(3),), skip="*")
def break_after_class(x):
    class A:
        k = 2

        def go(self, y):
            return y * self.k

    a = A()
    y = a.go(x)
    torch._dynamo.graph_break()
    return a.go(y), type(a) is A, A


@case(lambda: (t(3),), skip="*")
def break_in_class_body(x):
    y = x + 1

    class A:
        k = y * 2
        torch._dynamo.graph_break()
        j = k + 1

    return A.j


@case(lambda: (t(3),), skip="*")
def break_in_method_of_local_class(x):
    class A:
        def go(self, y):
            y = y + 1
            torch._dynamo.graph_break()
            return y * 2

    return A().go(x) + 1


# ---- type() ----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def type_of_three(x):
    cls = type("Made", (Plain,), {"base": 5, "twice": lambda self, y: y * 2})
    o = cls()
    return o.scale(x), o.twice(x), cls.__name__, cls.__module__, cls


@case(lambda: (t(3),))
def type_new_directly(x):
    cls = type.__new__(type, "Made", (), {"k": 3})
    return x * cls.k, cls.__bases__


@case(lambda: (t(3),))
def type_bad_arguments(x):
    out = []
    for args in (("a", ()), (1, (), {}), ("a", [], {}), ("a", (), [])):
        try:
            type(*args)
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


@case(lambda: (t(3),))
def types_new_class(x):
    import types

    cls = types.new_class("Made", (Plain,), {}, lambda ns: ns.update(base=9))
    return cls().scale(x)


# ---- metaclasses and hooks -------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def metaclass_inside(x):
    class A(metaclass=Upper, flag=1):
        def __init__(self, k):
            self.k = k

    a = A(3)
    return x * a.k, A.made_by, A.kw, a.called


@case(lambda: (t(3),))
def metaclass_made_inside(x):
    class Meta(type):
        def __call__(cls, *args):
            return [super().__call__(*args)]

        @property
        def size(cls):
            return len(cls.__name__)

    class A(metaclass=Meta):
        def __init__(self, k):
            self.k = k

    return x * A(3)[0].k, A.size, type(A).__name__


@case(lambda: (t(3),))
def metaclass_prepare(x):
    class A(metaclass=Prepared):
        other = given + "!"  # noqa: F821

    return x + 1, A.given, A.other


@case(lambda: (t(3),))
def metaclass_conflict(x):
    class A(metaclass=Upper):
        pass

    try:

        class B(A, metaclass=Prepared):
            pass

    except TypeError as e:
        return x + 1, str(e)


@scenario(captures=(1, 1))
def init_subclass_inside():
    def f(x):
        class A(Registered, tag="a"):
            pass

        class B(A):
            pass

        return x + len(REGISTRY)

    return Setup(f, lambda: (t(3),), watch=lambda: list(REGISTRY), cleanup=REGISTRY.clear)


@case(lambda: (t(3),))
def set_name_inside(x):
    class A:
        d = Named()

    a = A()
    first = a.d
    a.d = x
    return a.d + first, A.d.owner, A.d.name


@case(lambda: (t(3),))
def class_getitem_inside(x):
    class Box:
        def __class_getitem__(cls, k):
            return (cls.__name__, k)

    return x + 1, Box[3], Box["a"]


@case(lambda: (t(3),))
def mro_entries_inside(x):
    class Entry:
        def __mro_entries__(self, bases):
            return (Plain,)

    e = Entry()

    class A(e):
        pass

    return A().scale(x), A.__orig_bases__[0] is e


@case(lambda: (t(3),))
def abstract_inside(x):
    class Base(abc.ABC):
        @abc.abstractmethod
        def run(self, x): ...

        def go(self, x):
            return self.run(x) + 1

    class Impl(Base):
        def run(self, x):
            return x * 2

    try:
        Base()
        r = None
    except TypeError as e:
        r = str(e)
    return Impl().go(x), r, isinstance(Impl(), Base)


# ---- library factories -----------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def namedtuple_made_inside(x):
    P = collections.namedtuple("P", "a b", defaults=[3])
    p = P(x + 1)
    return p.a * p.b, p._replace(b=4), p._fields, P


@case(lambda: (t(3),))
def typed_namedtuple_inside(x):
    class P(typing.NamedTuple):
        a: torch.Tensor
        b: int = 2

        def prod(self):
            return self.a * self.b

    return P(x).prod(), P(x, 5)


@case(lambda: (t(3),))
def enum_inside(x):
    class Color(enum.Enum):
        RED = 1
        BLUE = enum.auto()

        def scale(self, x):
            return x * self.value

    return Color.BLUE.scale(x), Color(1).name, [c.name for c in Color], Color["RED"] is Color.RED


@case(lambda: (t(3),), skip="*" if sys.version_info < (3, 12) else None)  # asks for its caller's frame
def enum_functional_inside(x):
    Kind = enum.Enum("Kind", "a b c")
    F = enum.IntFlag("F", ["r", "w"])
    return x * Kind.c.value, (F.r | F.w).value, F(3) == F.r | F.w


@case(lambda: (t(3),))
def dataclass_inside(x):
    @dataclasses.dataclass
    class P:
        a: torch.Tensor
        b: int = 2
        c: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            self.c.append(self.b)

    p = P(x)
    q = P(x, b=3)
    return p.a * p.b, q.c, p.c is q.c, P


@case(lambda: (t(3),))
def frozen_dataclass_inside(x):
    @dataclasses.dataclass(frozen=True, order=True, slots=True)
    class P:
        a: int
        b: int = 2

    p, q = P(1), P(1, 3)
    try:
        p.a = 5
        r = None
    except dataclasses.FrozenInstanceError as e:
        r = str(e)
    return x * p.b, p < q, p == P(1), r, dataclasses.asdict(q), {p: 1}[P(1)], repr(q)


@case(lambda: (t(3),))
def ordered_dataclass_inside(x):
    @dataclasses.dataclass(frozen=True, order=True)
    class P:
        a: int
        b: int = 2
        c: list = dataclasses.field(default_factory=lambda: [1], compare=False)

    p, q = P(1), P(1, 3)
    try:
        p.a = 5
        r = None
    except dataclasses.FrozenInstanceError as e:
        r = str(e)
    return x * p.b, p < q, p == P(1), r, {p: 1}[P(1)], repr(q), [f.name for f in dataclasses.fields(P)], p, P


@case(lambda: (t(3),))
def dataclass_with_inheritance_inside(x):
    @dataclasses.dataclass
    class A:
        a: int = 1
        init: dataclasses.InitVar[int] = 4

        def __post_init__(self, init):
            self.n = init

    @dataclasses.dataclass
    class B(A):
        b: int = 2

        def total(self):
            return self.a + self.b + self.n

    return x * B().total(), B(a=5).a, B.__match_args__


@case(lambda: (t(3),))
def dataclass_bad_default_inside(x):
    try:

        @dataclasses.dataclass
        class A:
            a: list = []

    except ValueError as e:
        return x + 1, str(e)


@case(lambda: (t(3),))
def namedtuple_returned(x):
    P = collections.namedtuple("P", ["a", "b"])
    Q = collections.namedtuple("Q", "x y", rename=False, module="elsewhere")
    return P(x + 1, 2), Q(1, P(3, x)), P.__module__, Q.__module__


@case(lambda: (t(3),))
def make_dataclass_inside(x):
    P = dataclasses.make_dataclass("P", [("a", int), ("b", int, 4)])
    return x * P(1).b, P(1) == P(1, 4)


@case(lambda: (t(3),), skip="*")
def generic_inside(x):
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v: T):
            self.v = v

    b = Box[int](3)
    return x * b.v, Box.__parameters__ == (T,), T.__name__


@case(lambda: (t(3),), skip="*")
def protocol_inside(x):
    @typing.runtime_checkable
    class HasRun(typing.Protocol):
        def run(self, x): ...

    class Impl:
        def run(self, x):
            return x + 1

    return Impl().run(x), isinstance(Impl(), HasRun), isinstance(3, HasRun)


@case(lambda: (t(3),))
def typed_dict_inside(x):
    class Opts(typing.TypedDict, total=False):
        k: int
        name: str

    o = Opts(k=3)
    return x * o["k"], type(o), Opts.__optional_keys__


@case(lambda: (t(3),))
def newtype_inside(x):
    UserId = typing.NewType("UserId", int)
    return x + UserId(4), UserId.__name__


@case(lambda: (t(3),))
def total_ordering_inside(x):
    @functools.total_ordering
    class V:
        def __init__(self, v):
            self.v = v

        def __eq__(self, o):
            return self.v == o.v

        def __lt__(self, o):
            return self.v < o.v

    return x + 1, V(1) <= V(2), V(3) > V(2), V(1) >= V(2), max(V(1), V(5)).v


@case(lambda: (t(3),))
def cached_property_inside(x):
    class A:
        n = 0

        @functools.cached_property
        def v(self):
            A.n += 1
            return x + 1

    a = A()
    return a.v + a.v, A.n


@case(lambda: (t(3),), skip="ClassStatement")
def autograd_function_inside(x):
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 10  # not the derivative: it must be asked

    return Odd.apply(x) + 1


@scenario(skip="ClassStatement")
def autograd_function_inside_with_gradients():
    x = t(3, grad=True)

    return Setup(autograd_function_inside, lambda: (x,), watch=lambda: x.grad, after=lambda out: out.sum().backward())


test_class_creation = cases.as_test(__name__)
