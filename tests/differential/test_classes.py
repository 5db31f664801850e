"""User classes: CPython's attribute rules, descriptors, operators, instances made and changed in the frame."""

import abc
import functools

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class Base:
    shared = [1]

    def __init__(self, k=2):
        self.k = k

    def scale(self, x):
        return x * self.k

    @property
    def double(self):
        return self.k * 2

    @double.setter
    def double(self, v):
        self.k = v // 2

    @classmethod
    def make(cls, k):
        return cls(k)

    @staticmethod
    def plus(x):
        return x + 1


class Child(Base):
    def __init__(self, k=3, extra=1):
        super().__init__(k)
        self.extra = extra

    def scale(self, x):
        return super().scale(x) + self.extra

    @property
    def double(self):
        return super().double + 1


class Slotted:
    __slots__ = ("a", "_b")

    def __init__(self, a):
        self.a = a
        self._b = 1


class Typed:
    """A data descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, owner=None):
        return self if obj is None else getattr(obj, self.name) + 1

    def __set__(self, obj, value):
        setattr(obj, self.name, value * 10)


class NonData:
    def __get__(self, obj, owner=None):
        return "descriptor"


class WithDescriptors:
    v = Typed()
    n = NonData()

    def __init__(self):
        self.v = 2


class Dynamic:
    def __init__(self):
        self.real = 1

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return name[4:]
        raise AttributeError(f"no {name}")


class Intercepted:
    def __getattribute__(self, name):
        if name == "magic":
            return 42
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2 if isinstance(value, int) else value)

    def __delattr__(self, name):
        super().__setattr__("deleted", name)
        super().__delattr__(name)


class Number:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return Number(self.v + (o.v if isinstance(o, Number) else o))

    def __radd__(self, o):
        return Number(o + self.v)

    def __iadd__(self, o):
        self.v += o
        return self

    def __mul__(self, o):
        return NotImplemented

    def __rmul__(self, o):
        return "rmul"

    def __eq__(self, o):
        return isinstance(o, Number) and bool(self.v == o.v)

    def __hash__(self):
        return hash(self.v)

    def __lt__(self, o):
        return self.v < o.v

    def __neg__(self):
        return Number(-self.v)

    def __bool__(self):
        return self.v != 0

    def __len__(self):
        return 7

    def __getitem__(self, i):
        if i >= 3:
            raise IndexError(i)
        return self.v * i

    def __setitem__(self, i, v):
        self.v = (i, v)

    def __delitem__(self, i):
        self.v = ("del", i)

    def __contains__(self, i):
        return i == self.v

    def __call__(self, x, *, k=1):
        return x * self.v * k

    def __int__(self):
        return int(self.v)

    def __index__(self):
        return int(self.v)

    def __float__(self):
        return float(self.v)

    def __repr__(self):
        return f"Number({self.v})"

    def __matmul__(self, o):
        return ("matmul", o)

    def __abs__(self):
        return Number(abs(self.v))

    def __divmod__(self, o):
        return divmod(self.v, o)

    def __format__(self, spec):
        return f"<{self.v}:{spec}>"


class Bigger(Number):
    def __radd__(self, o):
        return "bigger"


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@case(lambda: (t(3), Base()))
def method_and_attribute(x, b):
    return b.scale(x), b.k, b.shared is Base.shared


@case(lambda: (t(3), Child()))
def inheritance_and_super(x, c):
    return c.scale(x), c.double, isinstance(c, Base), type(c) is Child, issubclass(Child, Base)


@case(lambda: (t(3), Base()))
def property_set(x, b):
    b.double = 10
    return b.scale(x), b.double


@case(lambda: (t(3), Base()))
def attributes_written_and_deleted(x, b):
    b.new = x * 2
    b.k = 7
    del b.k
    b.k = b.new
    return hasattr(b, "zz"), b.k


@case(lambda: (t(3), Base()))
def attribute_missing_caught(x, b):
    try:
        b.nothing
    except AttributeError as error:
        return x + 1, str(error), error.name, getattr(b, "nothing", 5)


@case(lambda: (t(3), Base()))
def attribute_functions(x, b):
    setattr(b, "q", x + 1)
    had = hasattr(b, "q")
    delattr(b, "k")
    return getattr(b, "q"), had, hasattr(b, "k"), vars(b).keys(), b.__dict__["q"] is b.q


@case(lambda: (t(3),))
def instance_made_and_returned(x):
    b = Base(4)
    b.y = b.scale(x)
    return b, b


@case(lambda: (t(3),))
def class_methods(x):
    c = Child.make(5)
    return c.scale(x), Child.plus(x), c.plus(x), c


@case(lambda: (t(3), Slotted(4)))
def slots(x, s):
    s.a += 1
    made = Slotted(x)
    made._b = s
    try:
        s.other = 1
    except AttributeError as error:
        return x * s.a, made, str(error)


@case(lambda: (t(3),))
def slot_unset(x):
    s = object.__new__(Slotted)
    try:
        s.a
    except AttributeError as error:
        return x + 1, str(error), hasattr(s, "_b")


@case(lambda: (t(3), WithDescriptors()))
def descriptors(x, d):
    before = d.v
    d.v = 5
    d.__dict__["n"] = "instance"
    return x * d.v, before, d.n, d._v


@case(lambda: (t(3), WithDescriptors()))
def descriptor_on_class(x, d):
    return x + 1, WithDescriptors.n, WithDescriptors.v is WithDescriptors.__dict__["v"]


@case(lambda: (t(3), Dynamic()))
def getattr_hook(x, d):
    try:
        d.other
    except AttributeError as error:
        return x * d.real, d.dyn_a, str(error), getattr(d, "zz", None)


@case(lambda: (t(3), Intercepted()))
def getattribute_and_setattr_hooks(x, o):
    o.a = 4
    o.b = x
    del o.b
    return x * o.a, o.magic, o.deleted


@case(lambda: (t(3), Number(3)))
def operators(x, n):
    m = n + 1
    r = 5 + n
    n += 2
    return n(x), n(x, k=2), m, r, n, 2 * n, n == Number(5), n != Number(5), -n, bool(Number(0)), len(n), n @ 3, abs(Number(-4)), divmod(n, 2)


@case(lambda: (t(3), Number(3)))
def item_protocol(x, n):
    a = n[2], list(n), 3 in n, [*n]
    n[1] = x
    b = n.v
    del n[4]
    return a, b, n.v, x + 1


@case(lambda: (t(3),))
def conversions(x):
    n = Number(3)
    return x * int(n), float(n), [10, 20, 30, 40][n], f"{n!r} {n:spec} {n}", str(n), repr(n), range(n), bool(n)


@case(lambda: (t(3),))
def reflected_priority(x):
    return Number(1) + Bigger(2), x + 1, min([Number(3), Number(1)]), sorted([Number(3), Number(1)])


@case(lambda: (t(3),))
def unsupported_operand_caught(x):
    said = []
    for f in (
        lambda: Number(1) * 3,
        lambda: Base() + 1,
        lambda: Base() < Base(),
        lambda: -Base(),
        lambda: Base()[0],
        lambda: len(Base()),
        lambda: iter(Base()),
        lambda: Base()(),
        lambda: 1 in Base(),
    ):
        try:
            f()
        except TypeError as error:
            said.append(str(error))
    return x + 1, said


@case(lambda: (t(3), Countdown(3)))
def iterator_class(x, c):
    items = [i * x for i in c]
    return items, list(Countdown(2)), c


@case(lambda: (t(3),))
def default_eq_and_hash(x):
    a, b = Base(), Base()
    d = {a: 1, b: 2}
    return a == b, a == a, a != b, d[a], x + 1, a in [b], a in {b}


@case(lambda: (t(3),))
def custom_hash_key(x):
    d = {Number(1): "a"}
    return d[Number(1)], Number(2) in d, x + 1


@case(lambda: (t(3),))
def class_defined_inside(x):
    class Local:
        k = 3

        def __init__(self, y):
            self.y = y

        def go(self):
            return self.y * self.k

    return Local(x).go()


@scenario()
def abstract_class():
    class A(abc.ABC):
        @abc.abstractmethod
        def go(self, x): ...

        def run(self, x):
            return self.go(x) + 1

    class B(A):
        def go(self, x):
            return x * 2

    def f(x, b):
        return b.run(x), isinstance(b, A)

    return Setup(f, lambda: (t(3), B()))


@scenario()
def metaclass_call():
    class Meta(type):
        def __call__(cls, *args):
            made = super().__call__(*args)
            made.tag = "meta"
            return made

        @property
        def kind(cls):
            return cls.__name__.lower()

    class A(metaclass=Meta):
        def __init__(self, k):
            self.k = k

    def f(x):
        a = A(3)
        return x * a.k, a.tag, A.kind

    return Setup(f, lambda: (t(3),))


@scenario()
def new_and_singleton():
    class A:
        def __new__(cls, k):
            self = super().__new__(cls)
            self.made = True
            return self

        def __init__(self, k):
            self.k = k

    class One:
        it = None

        def __new__(cls):
            if cls.it is None:
                cls.it = super().__new__(cls)
            return cls.it

    One()

    def f(x):
        a = A(2)
        return x * a.k, a.made, One() is One()

    return Setup(f, lambda: (t(3),))


@scenario()
def multiple_inheritance():
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        def go(self, x):
            return super().go(x) * 2

    class C(A):
        def go(self, x):
            return super().go(x) * 3

    class D(B, C):
        def go(self, x):
            return super().go(x) - 1

    return Setup(lambda x, d: (d.go(x), [c.__name__ for c in type(d).__mro__]), lambda: (t(3), D()))


@scenario(captures=(1, 1))
def cached_property():
    class A:
        @functools.cached_property
        def big(self):
            return 10

    a = A()
    return Setup(lambda x: x * a.big, lambda: (t(3),), watch=lambda: a)


@scenario()
def total_ordering():
    @functools.total_ordering
    class V:
        def __init__(self, n):
            self.n = n

        def __eq__(self, o):
            return self.n == o.n

        def __lt__(self, o):
            return self.n < o.n

    return Setup(lambda x: (x + 1, V(1) >= V(2), V(1) <= V(2), max(V(1), V(5)).n), lambda: (t(3),))


@scenario()
def callable_object_compiled():
    class Op:
        def __init__(self):
            self.calls = 0

        def __call__(self, x):
            return x * 2

    return Setup(Op(), lambda: (t(3),))


@case(lambda: (t(3), Base()))
def bound_method_kept(x, b):
    m = b.scale
    b.k = 100
    return m(x), m.__self__ is b, m.__func__ is Base.scale, m.__name__


@case(lambda: (t(3),))
def class_attribute_written(x):
    return x * Base.shared[0], Base.__name__, Base.__mro__[-1], type(Base())


@scenario(captures=(1, 1))
def class_attribute_counter():
    class A:
        n = 0

    def f(x):
        A.n += 1
        return x * A.n

    return Setup(f, lambda: (t(3),), watch=lambda: A.n)


@case(lambda: (t(3), Base()))
def class_of_instance_changed(x, b):
    return x + 1, b.__class__ is Base, b.__class__.__name__


@scenario()
def type_made_by_three_arguments():
    A = type("A", (Base,), {"tag": 5})
    return Setup(lambda x, a: x * a.tag * a.k, lambda: (t(3), A()))


@case(lambda: (t(3),))
def instance_with_tensor_attributes(x):
    class_ = Base
    b = class_(k=x * 2)
    b.k.add_(1)
    return b.scale(x), b


@case(lambda: (t(3), Base(), Base()))
def same_list_in_two_objects(x, a, b):
    a.items = b.items = [x + 1]
    a.items.append(2)
    return a, b


@case(lambda: (torch.nn.Parameter(t(3)),))
def parameter_argument(p):
    return p * 2, isinstance(p, torch.nn.Parameter), type(p).__name__, p.requires_grad, p


test_classes = cases.as_test(__name__)
