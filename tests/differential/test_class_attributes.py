"""Attribute access in all forms: descriptors, hooks, super, slots, __dict__, __class__, class attributes, what instances are made of."""

import functools
import types

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class Data:
    """Data descriptor that keeps its values in the instance's dictionary under its own name."""

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        if obj is None:
            return ("class", owner.__name__)
        return obj.__dict__[self.name]

    def __set__(self, obj, value):
        obj.__dict__[self.name] = value

    def __delete__(self, obj):
        del obj.__dict__[self.name]


class SetOnly:
    def __set__(self, obj, value):
        obj.__dict__["_set"] = value


class WithData:
    d = Data()
    s = SetOnly()


class Meta(type):
    flavour = "meta"

    @property
    def on_meta(cls):
        return cls.__name__ + "?"

    @on_meta.setter
    def on_meta(cls, v):
        cls.changed = v

    def method(cls, k):
        return (cls.__name__, k)

    def __getattr__(cls, name):
        if name.startswith("auto_"):
            return name[5:]
        raise AttributeError(name)

    def __len__(cls):
        return 7

    def __iter__(cls):
        return iter((1, 2))

    def __contains__(cls, v):
        return v == 1

    def __getitem__(cls, k):
        return k * 2

    def __instancecheck__(cls, obj):
        return getattr(obj, "quacks", False)

    def __subclasscheck__(cls, sub):
        return getattr(sub, "quacks", False)

    def __bool__(cls):
        return False

    def __add__(cls, o):
        return ("add", o)

    def __eq__(cls, o):
        return o == 5

    def __hash__(cls):
        return 5


class WithMeta(metaclass=Meta):
    flavour2 = "own"

    def method2(self):
        return 2


class Duck:
    quacks = True


class A:
    tag = "A"

    def f(self, x):
        return x + 1

    @classmethod
    def c(cls):
        return ("A.c", cls.__name__)

    @staticmethod
    def s(v):
        return ("A.s", v)

    @property
    def p(self):
        return "A.p"

    def __getitem__(self, k):
        return ("A", k)

    def __init__(self, **kw):
        self.kw = kw


class B(A):
    tag = "B"

    def f(self, x):
        return super().f(x) * 2

    @classmethod
    def c(cls):
        return ("B.c", super().c())

    @staticmethod
    def s(v):
        return ("B.s", super(B, B).s(v))

    @property
    def p(self):
        return "B." + super().p

    def __getitem__(self, k):
        return ("B", super().__getitem__(k))

    def nested(self, x):
        def inner():
            return super(B, self).f(x)

        return inner() + [super(B, self).f(x + i) for i in range(2)][1]

    def zero_in_nested(self, x):
        def inner(s):
            return super().f(x)

        return inner(self)

    def __init__(self, **kw):
        super().__init__(**kw)
        self.b = 1


class C(A):
    tag = "C"

    def f(self, x):
        return super().f(x) * 3

    def __init__(self, c=0, **kw):
        super().__init__(**kw)
        self.c_ = c


class D(B, C):
    tag = "D"
    unbound = super(B)

    def f(self, x):
        return super().f(x) - 1


class Hooked:
    def __init__(self):
        object.__setattr__(self, "log", [])

    def __getattribute__(self, name):
        if name.startswith("x_"):
            return name
        return super().__getattribute__(name)

    def __getattr__(self, name):
        if name == "dynamic":
            return 42
        raise AttributeError(f"no {name}")

    def __setattr__(self, name, value):
        self.log.append(("set", name))
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self.log.append(("del", name))
        super().__delattr__(name)


class SlotBase:
    __slots__ = ("a",)


class SlotChild(SlotBase):
    __slots__ = ("b", "__dict__")


class SlotDefault:
    __slots__ = ("v",)

    def __init__(self):
        self.v = [1]


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


class Point3(Point):
    @property
    def z(self):
        return self.x


class Single:
    made = 0

    def __new__(cls, *args):
        self = super().__new__(cls)
        self.args = args
        return self

    def __init__(self, *args):
        self.n = len(args)


class Other:
    def __new__(cls, flag):
        if flag:
            return [flag]
        return object.__new__(cls)

    def __init__(self, flag):
        self.inited = True


class Cached:
    def __init__(self):
        self.calls = 0

    @functools.cached_property
    def value(self):
        self.calls += 1
        return torch.ones(2) * 3

    def plain(self, a, b=2):
        return (a, b)

    part = functools.partialmethod(plain, 1)
    part_kw = functools.partialmethod(plain, b=9)

    @functools.singledispatchmethod
    def kind(self, v):
        return "object"

    @kind.register
    def _(self, v: int):
        return "int"

    @kind.register(str)
    def _(self, v):
        return "str"

    @functools.lru_cache(maxsize=None)  # noqa: B019
    def lru(self, k):
        return k * 2


@functools.singledispatch
def dispatch(v):
    return "object"


@dispatch.register
def _(v: int):
    return "int"


@dispatch.register(list)
def _(v):
    return "list"


# ---- descriptors -----------------------------------------------------------------------------------------------------


@case(lambda: (t(3), WithData()))
def data_descriptor_whole(x, o):
    o.d = x + 1
    o.__dict__["s"] = "shadow"
    o.s = 4
    r = (o.d, o.s, o._set, WithData.d, sorted(o.__dict__))
    del o.d
    try:
        o.d  # noqa: B018
    except KeyError as e:
        return x * 2, r, e.args


@case(lambda: (t(3),))
def descriptor_protocol_by_hand(x):
    f = A.__dict__["f"]
    o = A()
    bound = f.__get__(o, A)
    p = A.__dict__["p"]
    return bound(x), A.__dict__["c"].__get__(None, B)(), A.__dict__["s"].__get__(o)(3), p.__get__(o), p.fget(o), p.__get__(None, A) is p


@case(lambda: (t(3),))
def class_level_reads(x):
    return x + 1, D.tag, D.f is D.__dict__["f"], B.c(), D.c(), B.s(1), D().s(2), A.p is A.__dict__["p"], D().p


@case(lambda: (t(3),))
def property_without_setter(x):
    o = A()
    out = []
    for action in (lambda: setattr(o, "p", 1), lambda: delattr(o, "p")):
        try:
            action()
        except AttributeError as e:
            out.append(str(e))
    return x + 1, out


@case(lambda: (t(3),))
def property_made_inside(x):
    class Temp:
        def get(self):
            return self._v

        def put(self, v):
            self._v = v + 1

        v = property(get, put, doc="hello")

    o = Temp()
    o.v = x
    return o.v, Temp.v.__doc__


# ---- metaclass attributes --------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def metaclass_attributes(x):
    return (
        x + 1,
        WithMeta.flavour,
        WithMeta.on_meta,
        WithMeta.method(3),
        WithMeta.auto_abc,
        hasattr(WithMeta, "nothing"),
        hasattr(WithMeta(), "flavour"),
        hasattr(WithMeta(), "method"),
    )


@case(lambda: (t(3),))
def metaclass_protocols(x):
    return x + 1, len(WithMeta), list(WithMeta), 1 in WithMeta, 2 in WithMeta, WithMeta[4], bool(WithMeta), WithMeta + 1, WithMeta == 5, WithMeta != 5


@case(lambda: (t(3),))
def metaclass_checks(x):
    return (
        x + 1,
        isinstance(Duck(), WithMeta),
        isinstance(3, WithMeta),
        issubclass(Duck, WithMeta),
        issubclass(int, WithMeta),
        isinstance(WithMeta(), WithMeta),
    )


@case(lambda: (t(3),))
def metaclass_hash(x):
    return x + 1, {WithMeta: 1}[WithMeta], hash(WithMeta)


# ---- super -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def super_forms(x):
    d = D(c=5, k=1)
    return (
        d.f(x),
        d[2],
        d.p,
        d.nested(x),
        d.zero_in_nested(x),
        super(B, d).f(x),
        super(D, d).tag,
        super(B, D).c(),
        d.c_,
        d.kw,
    )


@case(lambda: (t(3),))
def super_attributes(x):
    s = super(D, D())
    return x + 1, s.__thisclass__, s.__self_class__, type(s.__self__), s.tag, hasattr(s, "nope"), s.__class__


@case(lambda: (t(3),))
def super_errors(x):
    out = []

    def no_cell():
        return super()

    def no_class(self):
        return super()

    for action in (lambda: super(B, 3), lambda: super(3, B()), no_cell, lambda: no_class(1), lambda: super(D, D()).nope):
        try:
            action()
        except (TypeError, RuntimeError, AttributeError) as e:
            out.append((type(e), str(e)))
    return x + 1, out


@case(lambda: (t(3),))
def super_unbound(x):
    s = super(B)
    bound = s.__get__(D(), D)
    return bound.f(x), D().unbound.tag


@case(lambda: (t(3),))
def super_setattr(x):
    o = Hooked()
    super(Hooked, o).__setattr__("direct", 5)
    return x + o.direct, o.log


# ---- hooks -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), Hooked()))
def all_hooks(x, o):
    o.a = x
    o.b = 2
    del o.b
    out = [o.x_any, o.dynamic, o.a + 1, getattr(o, "nope", "default"), hasattr(o, "b")]
    try:
        o.nope  # noqa: B018
    except AttributeError as e:
        out.append(str(e))
    try:
        del o.nope
    except AttributeError as e:
        out.append(str(e))
    return out, o.log


@case(lambda: (t(3),))
def hooks_on_fresh(x):
    o = Hooked()
    o.a = x * 2
    return o.a, o.log, o


@case(lambda: (t(3),))
def getattr_names(x):
    o = Point(1, 2)
    out = []
    for bad in (1, None):
        try:
            getattr(o, bad)
        except TypeError as e:
            out.append(str(e))
    setattr(o, "not an identifier", 3)
    return x + getattr(o, "not an identifier"), out, o


@case(lambda: (t(3),))
def object_attribute_methods(x):
    o = Point(1, 2)
    object.__setattr__(o, "x", x)
    object.__delattr__(o, "y")
    r = object.__getattribute__(o, "x") + 1
    try:
        object.__getattribute__(o, "y")
    except AttributeError as e:
        return r, str(e), o.__getattribute__("x")


# ---- slots -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), SlotDefault()))
def slots_changed(x, o):
    o.v.append(2)
    o.v = (x, o.v)
    return o.v[0] + 1


@case(lambda: (t(3),))
def slots_mixed(x):
    o = SlotChild()
    o.a, o.b, o.c = x, 2, 3
    del o.b
    out = [hasattr(o, "b"), o.__dict__]
    try:
        o.b  # noqa: B018
    except AttributeError as e:
        out.append(str(e))
    p = SlotBase()
    try:
        p.z = 1
    except AttributeError as e:
        out.append(str(e))
    try:
        p.__dict__  # noqa: B018
    except AttributeError as e:
        out.append(str(e))
    return o.a * 2, out, o, SlotBase.__slots__, SlotBase.a.__get__(o)


@case(lambda: (t(3), SlotChild()))
def slot_missing_argument(x, o):
    try:
        return o.a
    except AttributeError as e:
        o.a = x + 1
        return o.a, str(e)


@case(lambda: (t(3),))
def slot_delete_twice(x):
    o = SlotBase()
    o.a = 1
    del o.a
    try:
        del o.a
    except AttributeError as e:
        return x + 1, str(e)


# ---- __dict__ and __class__ ------------------------------------------------------------------------------------------


@case(lambda: (t(3), Point(1, 2)))
def dict_reads_and_writes(x, o):
    o.__dict__["z"] = x + 1
    o.__dict__.update(w=4)
    del o.__dict__["x"]
    d = vars(o)
    return d is o.__dict__, list(d), o.z * o.w, hasattr(o, "x"), "y" in vars(o)


@case(lambda: (t(3), Point(1, 2)), skip="AttributeWrite")
def dict_replaced(x, o):
    o.__dict__ = {"x": x + 1, "n": 3}
    return o.x * o.n, hasattr(o, "y"), o


@case(lambda: (t(3),))
def dict_replaced_on_fresh(x):
    o = Point(1, 2)
    d = {"x": x + 1}
    o.__dict__ = d
    o.y = 7
    return o.x, d, o


@case(lambda: (t(3), Point(1, 2)), skip="AttributeWrite")
def class_assigned(x, o):
    o.__class__ = Point3
    return x * o.z, type(o).__name__, isinstance(o, Point3)


@case(lambda: (t(3),))
def class_assigned_on_fresh(x):
    o = Point(x, 2)
    o.__class__ = Point3
    return o.z + 1, type(o), o


@case(lambda: (t(3),), skip="*")
def subclasses_listed(x):
    return x + 1, A.__subclasses__()[:2]


@case(lambda: (t(3),))
def class_assigned_badly(x):
    o = Point(x, 2)
    out = []
    for cls in (3, SlotBase, int):
        try:
            o.__class__ = cls
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


@case(lambda: (t(3), Point(1, 2)))
def dir_and_vars(x, o):
    o.zz = 1
    return x + 1, [n for n in dir(o) if not n.startswith("__")], sorted(vars(o)), "f" in dir(A), [n for n in vars(Point) if not n.startswith("_")]


@case(lambda: (t(3),))
def type_attributes(x):
    return (
        x + 1,
        D.__name__,
        D.__qualname__,
        D.__module__,
        D.__bases__,
        D.__base__,
        [c.__name__ for c in D.mro()],
        type(D),
        D.__doc__,
        Data.__doc__,
        sorted(k for k in D.__dict__ if not k.startswith("__")),
        object.__subclasshook__(3),
        isinstance(D.__dict__, types.MappingProxyType),
    )


@scenario(skip="*")
def class_attribute_set_and_restored():
    class K:
        v = 1

    def f(x):
        K.v += 1
        K.w = x * K.v
        r = K.w + 1
        del K.w
        return r, K.v

    return Setup(f, lambda: (t(3),), watch=lambda: (K.v, hasattr(K, "w")))


# ---- making instances ------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def new_and_init(x):
    s = Single(1, x)
    return s.args[1] + s.n, Other(3), Other(0).inited, s


@case(lambda: (t(3),))
def new_by_hand(x):
    o = Point.__new__(Point)
    before = vars(o).copy()
    o.__init__(x + 1, 2)
    p = object.__new__(Point3)
    Point.__init__(p, x, 4)
    return o.x, before, p.z + p.y, o, p


@case(lambda: (t(3),))
def construction_errors(x):
    out = []
    for action in (
        lambda: Point(1),
        lambda: Point(1, 2, 3),
        lambda: Point(1, q=2),
        lambda: SlotBase(1),
        lambda: object(1),
        lambda: object.__new__(),
        lambda: object.__new__(3),
        lambda: object.__new__(int),
        lambda: object.__new__(Point, 1),
        lambda: object.__init__(Point(1, 2), 3),
        lambda: SlotBase.__init__(SlotBase(), 3),
        lambda: type.__call__(3),
        lambda: int.__new__(Point),
    ):
        try:
            out.append(type(action()).__name__)
        except TypeError as e:
            out.append(str(e))
    return x + 1, out


@case(lambda: (t(3),))
def type_call_directly(x):
    o = type.__call__(Point, x, 2)
    p = Point.__call__(x, 3)
    return o.x + p.y, type(o)


@case(lambda: (t(3),))
def instance_attributes_shadow_methods(x):
    o = A()
    o.f = lambda y: y * 10
    o.__len__ = lambda: 5
    try:
        len(o)
        r = "len"
    except TypeError as e:
        r = str(e)
    return o.f(x), r


# ---- functools on classes --------------------------------------------------------------------------------------------


@case(lambda: (t(2), Cached()))
def cached_property_on_argument(x, c):
    return x + c.value + c.value, c.calls, "value" in vars(c)


@case(lambda: (t(2),))
def cached_property_on_fresh(x):
    c = Cached()
    r = x + c.value + c.value
    n = c.calls
    del c.value
    return r, n, c.value, c.calls


@case(lambda: (t(2),))
def partialmethods(x):
    c = Cached()
    return x + 1, c.part(), c.part(5), c.part_kw(4)


@case(lambda: (t(2),))
def singledispatchmethods(x):
    c = Cached()
    return x + 1, c.kind(1), c.kind("a"), c.kind([]), c.kind(True)


@case(lambda: (t(2),))
def singledispatch_function(x):
    return x + 1, dispatch(1), dispatch([]), dispatch("a"), dispatch(x), dispatch.dispatch(int)(3)


@case(lambda: (t(2),))
def method_objects(x):
    d = D()
    m = d.f
    return m(x), m.__self__ is d, m.__func__ is D.f, m == d.f, m != D().f, m is d.f, m.__name__, m.__qualname__


@case(lambda: (t(2),), skip="HashOrCompare")
def methods_as_keys(x):
    d = D()
    m = d.f
    return m(x), hash(m) == hash(d.f), {m: 1}[d.f]


test_class_attributes = cases.as_test(__name__)
