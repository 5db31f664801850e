"""Classes of the library used in captured code, subclasses of builtins, copying, weak references."""

import abc
import collections
import copy
import dataclasses
import enum
import gc
import numbers
import pickle
import typing
import weakref

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- dataclasses -----------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Config:
    k: int = 2
    names: list = dataclasses.field(default_factory=list)
    hidden: int = dataclasses.field(default=5, repr=False, compare=False)
    init: dataclasses.InitVar[int] = 0
    derived: int = dataclasses.field(init=False, default=0)
    shared: typing.ClassVar[int] = 9

    def __post_init__(self, init):
        self.derived = self.k + init


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: int
    b: str = "b"


@dataclasses.dataclass(slots=True, kw_only=True)
class Slotted:
    a: int
    t: torch.Tensor = None


@dataclasses.dataclass(unsafe_hash=True, eq=True)
class Child(Config):
    extra: tuple = ()
    names: list = dataclasses.field(default_factory=list, hash=False)


@dataclasses.dataclass
class Tree:
    v: torch.Tensor
    kids: list = dataclasses.field(default_factory=list)
    opts: dict = dataclasses.field(default_factory=dict)


@case(lambda: (t(3), Config(3)))
def dataclass_argument(x, c):
    c.k += 1
    c.names.append("n")
    return x * c.k + c.derived, c.names, c == Config(4, ["n"]), c != Config(1), c.shared


@case(lambda: (t(3),))
def dataclass_made(x):
    c = Config(names=["a"], init=4)
    d = Config()
    return x * c.derived, c, d.names is c.names, repr(c), Config.__match_args__, c == d


@case(lambda: (t(3),))
def dataclass_frozen(x):
    f = Frozen(1)
    return (
        x + f.a,
        outcome(lambda: setattr(f, "a", 2)),
        outcome(lambda: delattr(f, "a")),
        f < Frozen(2),
        f >= Frozen(1, "a"),
        sorted([Frozen(2), f])[0].a,
        outcome(lambda: f < 3),
        f == (1, "b"),
        repr(f),
        f,
    )


@case(lambda: (t(3),))
def dataclass_as_key(x):
    d = {Frozen(1): x + 1, Frozen(1, "c"): 2}
    return d[Frozen(1)], len(d), Frozen(2) in d, hash(Frozen(1)) == hash((1, "b")), outcome(lambda: hash(Config()))


@case(lambda: (t(3),))
def dataclass_slots_kw_only(x):
    s = Slotted(a=1, t=x)
    s.a = 4
    return s.t * s.a, outcome(lambda: Slotted(1)), outcome(lambda: setattr(s, "z", 1)), s, outcome(lambda: Slotted())


@case(lambda: (t(3),))
def dataclass_helpers(x):
    tree = Tree(x + 1, [Tree(x * 2)], {"a": (1, [2])})
    d = dataclasses.asdict(Config(3))
    return (
        dataclasses.replace(tree, v=x),
        d,
        dataclasses.astuple(Frozen(4)),
        [f.name for f in dataclasses.fields(Config)],
        dataclasses.is_dataclass(tree),
        dataclasses.is_dataclass(int),
        dataclasses.replace(Frozen(1), a=3),
        outcome(lambda: dataclasses.replace(Config(), derived=3)),
    )


@case(lambda: (t(3),))
def dataclass_asdict_computed(x):
    tree = Tree(x + 1, [Tree(x * 2)], {"a": (1, [2])})
    d = dataclasses.asdict(tree)
    return d, dataclasses.astuple(tree), d["opts"] is tree.opts, d["v"] is tree.v


@case(lambda: (t(3),), skip="MethodCall")
def dataclass_asdict_of_inputs(x):
    tree = Tree(x, [Tree(x * 2)], {"a": (1, [2])})
    d = dataclasses.asdict(tree)
    return d, dataclasses.astuple(tree), d["opts"] is tree.opts


@case(lambda: (t(3),))
def dataclass_inherited(x):
    c = Child(1, extra=(2,))
    return x + c.k, c, [f.name for f in dataclasses.fields(c)], c == Child(1, extra=(2,)), isinstance(c, Config)


@case(lambda: (t(3), Config(3)))
def dataclass_pattern(x, c):
    match c:
        case Config(1):
            return x
        case Config(k=3, names=[]):
            return x + 3


# ---- enums -----------------------------------------------------------------------------------------------------------


class Color(enum.Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1

    @property
    def pretty(self):
        return self.name.title()

    @classmethod
    def first(cls):
        return next(iter(cls))


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Perm(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    X = enum.auto()
    RW = R | W


class IPerm(enum.IntFlag):
    A = 1
    B = 2


class Mode(str, enum.Enum):
    TRAIN = "train"
    EVAL = "eval"


class SMode(enum.StrEnum):
    ON = enum.auto()


class Planet(enum.Enum):
    EARTH = (5.9, 6.3)
    MARS = (0.6, 3.3)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    def __call__(self, x):
        return x * self.mass


@case(lambda: (t(3), Color.RED))
def enum_members(x, c):
    return (
        x * c.value,
        c.name,
        c is Color.CRIMSON,
        Color(2),
        Color["GREEN"].pretty,
        [m.name for m in Color],
        len(Color),
        c in Color,
        Color.first(),
        c == Color.GREEN,
        c != 1,
        {Color.RED: 3}[c],
        repr(c),
        str(c),
        f"{c}",
        isinstance(c, Color),
        hash(c) == hash("RED"),
    )


@case(lambda: (t(3),))
def enum_errors(x):
    return (
        x + 1,
        outcome(lambda: Color(7)),
        outcome(lambda: Color["BLUE"]),
        outcome(lambda: Color.BLUE),
        outcome(lambda: Color.RED < Color.GREEN),
        outcome(lambda: setattr(Color.RED, "value", 3)),
    )


@case(lambda: (t(3),))
def enum_members_mapping(x):
    return x + 1, list(Color.__members__)


@case(lambda: (t(3),), skip="AttributeWrite")
def enum_member_set(x):
    return x + 1, outcome(lambda: setattr(Color, "RED", 3))


@case(lambda: (t(3), Level.HIGH))
def int_enum(x, v):
    return (
        x * v,
        v + 1,
        v > Level.LOW,
        Level(1),
        sorted([v, Level.LOW]),
        max(Level),
        f"{v}",
        str(v),
        repr(v),
        v == 5,
        [0] * Level.LOW,
        {5: "five"}[v],
        x[Level.LOW],
    )


@case(lambda: (t(3), Perm.R))
def flags(x, p):
    rw = p | Perm.W
    return (
        x * rw.value,
        rw,
        rw is Perm.RW,
        Perm.R in rw,
        Perm.X in rw,
        ~rw,
        rw & Perm.R,
        rw ^ Perm.W,
        bool(Perm(0)),
        [m.name for m in rw],
        (IPerm.A | IPerm.B) == 3,
        IPerm(3).value,
        IPerm.A | 8,
        rw.name,
        len(rw),
    )


@case(lambda: (t(3), Mode.TRAIN))
def string_enum(x, m):
    if m == "train":
        x = x + 1
    return x, m.upper(), Mode("eval"), m.value, SMode.ON, f"{SMode.ON}", m + "!", {"train": 1}[m], m in ("train", "x"), "ra" in m


@case(lambda: (t(3), Planet.MARS))
def enum_with_init(x, p):
    return p(x), p.radius, Planet((5.9, 6.3)), p.value


@case(lambda: (t(3), Color.RED))
def enum_match(x, c):
    match c:
        case Color.GREEN:
            return x
        case Color.RED:
            return x + 5


# ---- named tuples ----------------------------------------------------------------------------------------------------


class Pt(typing.NamedTuple):
    a: torch.Tensor
    b: int = 2

    def total(self):
        return self.a + self.b


Old = collections.namedtuple("Old", ["x", "y"], defaults=[7])


class Extended(Old):
    @property
    def both(self):
        return self.x * self.y


@case(lambda: (t(3), Pt(t(3, seed=2))))
def named_tuples(x, p):
    q = p._replace(b=5)
    o = Old(x)
    a, b = q
    return (
        q.total() + a,
        q,
        o.y,
        o._asdict(),
        Old._make([1, 2]),
        Old._fields,
        Old._field_defaults,
        p[1],
        len(p),
        p + (1,),
        o == (x, 7) if False else None,
        outcome(lambda: setattr(o, "x", 1)),
        outcome(lambda: Old()),
        outcome(lambda: Old(1, 2, 3)),
        outcome(lambda: p._replace(zz=1)),
        repr(Old(1, "a")),
        hash(Old(1, 2)) == hash((1, 2)),
        Extended(x, 3).both,
        Extended(1, 2),
    )


# ---- abstract classes, protocols, numbers ----------------------------------------------------------------------------


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    @property
    @abc.abstractmethod
    def name(self): ...

    @classmethod
    def __subclasshook__(cls, sub):
        return hasattr(sub, "is_shape") or NotImplemented


class Square(Shape):
    name = "square"

    def __init__(self, s):
        self.s = s

    def area(self):
        return self.s * self.s


class Virtual:
    is_shape = True


@typing.runtime_checkable
class HasLen(typing.Protocol):
    def __len__(self) -> int: ...


class One(abc.ABC):
    @abc.abstractmethod
    def only(self): ...


@case(lambda: (t(3), Square(2)))
def abstract_classes(x, s):
    return (
        x * s.area(),
        isinstance(s, Shape),
        isinstance(Virtual(), Shape),
        issubclass(Virtual, Shape),
        isinstance(3, Shape),
        outcome(lambda: Shape()),
        outcome(lambda: One()),
        isinstance([], HasLen),
        isinstance(3, HasLen),
        isinstance(3, numbers.Integral),
        isinstance(s, collections.abc.Sized),
        isinstance([], collections.abc.Sequence),
        issubclass(dict, collections.abc.Mapping),
        isinstance(lambda: 0, collections.abc.Callable),
    )


class UserSeq(collections.abc.Sequence):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class UserMap(collections.abc.MutableMapping):
    def __init__(self):
        self.d = {}

    def __getitem__(self, k):
        return self.d[k]

    def __setitem__(self, k, v):
        self.d[k] = v

    def __delitem__(self, k):
        del self.d[k]

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)


class UserSet(collections.abc.MutableSet):
    def __init__(self, items=()):
        self.d = dict.fromkeys(items)

    def __contains__(self, v):
        return v in self.d

    def __iter__(self):
        return iter(self.d)

    def __len__(self):
        return len(self.d)

    def add(self, v):
        self.d[v] = None

    def discard(self, v):
        self.d.pop(v, None)


@case(lambda: (t(3),))
def abc_mixins(x):
    s, m, u = UserSeq([1, 2, 1]), UserMap(), UserSet([1, 2])
    m["a"] = x
    m.update(b=2)
    m.setdefault("c", []).append(1)
    u |= {3}
    return (
        m["a"] + 1,
        list(s),
        s.count(1),
        s.index(2),
        2 in s,
        list(reversed(s)),
        list(m),
        m.get("z", 4),
        m.pop("b"),
        list(m.values())[1],
        dict(m.items())["c"],
        "a" in m,
        sorted(u),
        sorted(u & {1, 5}),
        sorted(u - {1}),
        u == {1, 2, 3},
        u.isdisjoint({9}),
        outcome(lambda: m["q"]),
    )


# ---- typing ----------------------------------------------------------------------------------------------------------

T = typing.TypeVar("T")


class Holder(typing.Generic[T]):
    v: T

    def __init__(self, v: T) -> None:
        self.v = v


class TD(typing.TypedDict):
    k: int


UserId = typing.NewType("UserId", int)


@case(lambda: (t(3),))
def typing_constructs(x):
    h = Holder[int](3)
    d: TD = TD(k=4)
    return (
        x * h.v + typing.cast(int, d["k"]),
        type(h),
        UserId(5),
        typing.get_origin(list[int]),
        typing.get_args(dict[str, int]),
        typing.Optional[int] == typing.Union[int, None],
        Holder[int].__origin__ is Holder,
        isinstance(h, Holder),
        typing.TYPE_CHECKING,
        list[int]([1]),
    )


@case(lambda: (t(3),))
def type_hints(x):
    return x + 1, typing.get_type_hints(Config)["k"]


# ---- subclasses of builtins ------------------------------------------------------------------------------------------


class MyInt(int):
    def __add__(self, o):
        return MyInt(int(self) + int(o) + 100)

    def extra(self):
        return self * 2


class Tagged(int):
    def __new__(cls, v, tag="t"):
        self = super().__new__(cls, v)
        self.tag = tag
        return self


class MyFloat(float):
    unit = "m"

    def __repr__(self):
        return f"{float(self)}{self.unit}"


class MyStr(str):
    def shout(self):
        return self.upper() + "!"

    def __eq__(self, o):
        return str(self).lower() == str(o).lower()

    def __hash__(self):
        return hash(str(self).lower())


class MyList(list):
    def append(self, v):
        super().append(v)
        self.count_ = len(self)

    def __getitem__(self, i):
        return super().__getitem__(i)

    @property
    def last(self):
        return self[-1]


class MyDict(dict):
    def __getattr__(self, k):
        try:
            return self[k]
        except KeyError:
            raise AttributeError(k) from None

    __setattr__ = dict.__setitem__


class LoggedDict(dict):
    def __setitem__(self, k, v):
        super().__setitem__(k, ("logged", v))

    def __getitem__(self, k):
        return super().__getitem__(k)[1]

    def __contains__(self, k):
        return True

    def __len__(self):
        return 99

    def __iter__(self):
        return iter(["only"])


class MyTuple(tuple):
    def __new__(cls, *items):
        return super().__new__(cls, items)

    def __getitem__(self, i):
        return ("item", super().__getitem__(i))


class MySet(set):
    def add(self, v):
        super().add(v * 2)


class MyFrozen(frozenset):
    label = "f"


class MyErr(Exception):
    def __init__(self, a, b=2):
        super().__init__(a)
        self.b = b

    def __str__(self):
        return f"MyErr:{self.args[0]}:{self.b}"


class NoInit(KeyError):
    code = 3


@case(lambda: (t(3),))
def int_subclass(x):
    a = MyInt(3)
    return (
        x * int(a),
        a + 4,
        type(a + 4),
        a.extra(),
        a * 2,
        a == 3,
        {3: "x"}[a],
        a,
        repr(a),
        [1, 2, 3, 4][a],
        type(-a),
        a.bit_length(),
        isinstance(a, int),
    )


@case(lambda: (t(3), MyInt(4)))
def int_subclass_argument(x, a):
    return x * a.extra(), a + 1, a > 3, list(range(a)), a


@case(lambda: (t(3),))
def int_subclass_with_attributes(x):
    a = Tagged(5, tag="q")
    a.more = x + 1
    return x * 2, a, a.tag, a + 1, a.more


@case(lambda: (t(3),))
def float_subclass(x):
    f = MyFloat(1.5)
    return x * float(f), repr(f), f + 1, f.unit, f, f.is_integer()


NAME = MyStr("Ab")


@case(lambda: (t(3), NAME))
def str_subclass(x, s):
    m = MyStr("hello")
    return (
        x + 1,
        m.shout(),
        m == "HELLO",
        {"hello": 1}[m] if False else None,
        m,
        s.shout(),
        m + "x",
        type(m + "x"),
        len(m),
        s == "aB",
        m[1:],
        f"{m}",
        "-".join([m]),
        {s: 1}[MyStr("AB")],
    )


@case(lambda: (t(3), MyList([1])))
def list_subclass(x, a):
    m = MyList([x])
    m.append(x + 1)
    a.append(5)
    m.extend([3])
    return (
        m.last,
        m.count_,
        m,
        a.count_,
        a[0],
        len(m),
        m == [x] if False else None,
        m[1],
        [*a],
        a + [1],
        type(a + [1]),
        type(a[:]),
        sorted(a, reverse=True),
        a.copy(),
    )


@case(lambda: (t(3), MyDict(k=2)))
def dict_subclass(x, d):
    d.z = x + 1
    e = MyDict(a=1)
    e.b = 2
    return (
        d.z * d.k,
        hasattr(d, "nope"),
        e,
        {**e},
        e.a,
        list(d),
        d.pop("k"),
        e == {"a": 1, "b": 2},
        e | {"c": 3},
        outcome(lambda: d.q),
        e.copy(),
        type(e.copy()),
    )


@case(lambda: (t(3),))
def dict_subclass_overrides(x):
    d = LoggedDict(a=("raw", 1))
    d["b"] = x
    d.update(c=("raw", 3))
    return d["b"] + d["a"], len(d), "zz" in d, list(d), dict(d), d.get("b"), d.keys(), bool(d), {**d}


@case(lambda: (t(3),))
def tuple_subclass(x):
    p = MyTuple(x, 2)
    a, b = p
    return p[0][1] + 1, len(p), a is x, list(p)[1], p == (x, 2) if False else None, p, p + (1,), p[1], type(p[:1])


@case(lambda: (t(3),))
def set_subclass(x):
    s = MySet([1])
    s.add(2)
    f = MyFrozen([1, 2])
    return x + len(s), sorted(s), 4 in s, f.label, 2 in f, s == {1, 4}, s


@case(lambda: (t(3),))
def set_subclass_operators(x):
    s, f = MySet([1]), MyFrozen([1, 2])
    return x + 1, sorted(f | {3}), type(s | {5}), type(s & {1}), type(f | {4})


@case(lambda: (t(3),))
def exception_subclasses(x):
    out = []
    for make in (lambda: MyErr("a"), lambda: MyErr("a", b=5), lambda: NoInit("k")):
        try:
            raise make()
        except (MyErr, NoInit) as e:
            out.append((str(e), e.args, getattr(e, "b", None), repr(e), isinstance(e, LookupError)))
    return x + 1, out


@case(lambda: (t(3),))
def exception_raised_out(x):
    y = x + 1
    raise MyErr(y.shape[0], b=7)


@case(lambda: (t(3),))
def ordered_and_default_subclasses(x):
    class_ = type("OD", (collections.OrderedDict,), {"peek": lambda self: next(iter(self))})
    o = class_(a=1)
    o["b"] = 2
    o.move_to_end("a")
    return x + o["b"], o.peek(), list(o)


@case(lambda: (t(3),))
def user_containers(x):
    d, li = collections.UserDict(a=1), collections.UserList([1, 2])
    s = collections.UserString("abc")
    d["b"] = x
    li.append(3)
    return d["b"] + len(li), dict(d) if False else sorted(d), li + [4], s.upper(), s == "abc", "a" in d, li[1:], d | {"c": 1}


# ---- copying ---------------------------------------------------------------------------------------------------------


class Node:
    def __init__(self, v, nxt=None):
        self.v, self.next = v, nxt


class Reduced:
    def __init__(self, v):
        self.v = v

    def __reduce__(self):
        return (Reduced, (("reduced", self.v),))


class Stateful:
    def __init__(self, v):
        self.v, self.cache = v, "big"

    def __getstate__(self):
        return {"v": self.v}

    def __setstate__(self, state):
        self.__dict__.update(state, restored=True)


class CustomCopy:
    def __init__(self, v):
        self.v = v

    def __copy__(self):
        return ("copy", self.v)

    def __deepcopy__(self, memo):
        return ("deep", copy.deepcopy(self.v, memo))


class SlotCopy:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


class NewArgs(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    def __getnewargs__(self):
        return (self[0], self[1])


@case(lambda: (t(3), Node(1, Node([2]))), captures=(1,))
def copies(x, n):
    c, d = copy.copy(n), copy.deepcopy(n)
    m = Node(x + 1)
    m.next = m
    e = copy.deepcopy(m)
    return x + 1, c.next is n.next, d.next is n.next, d.next.v, e.next is e, e.v, type(c)


@case(lambda: (t(3),))
def copy_hooks(x):
    return (
        x + 1,
        copy.copy(CustomCopy([1])),
        copy.deepcopy(CustomCopy([1])),
        copy.copy(Reduced(2)).v,
        copy.deepcopy(Stateful(3)),
        copy.copy(SlotCopy([1])),
        copy.deepcopy(SlotCopy([1])),
        copy.copy(Frozen(1)),
        copy.deepcopy(Pt(x + 1, 3)),
        copy.copy(MyList([1])),
        copy.deepcopy(MyDict(a=[1])),
        copy.copy(NewArgs(1, 2)),
        copy.copy(Color.RED) is Color.RED,
        copy.deepcopy([Color.RED])[0] is Color.RED,
        copy.copy(int) is int,
        copy.deepcopy(outcome) is outcome,
    )


@case(lambda: (t(3),), skip="*")
def exception_copied(x):
    return x + 1, copy.copy(MyErr("a")).args


@case(lambda: (t(3),), skip="*")
def pickled(x):
    return x + 1, pickle.loads(pickle.dumps(Node(1))).v, pickle.loads(pickle.dumps(Frozen(3)))


# ---- weak references and lifetimes -----------------------------------------------------------------------------------


class Weak:
    def __init__(self, v=0):
        self.v = v


@case(lambda: (t(3), Weak(3)))
def weakref_of_argument(x, w):
    r = weakref.ref(w)
    return x * r().v, r() is w, r


@scenario()
def weakref_in_closure():
    w = Weak(2)
    r = weakref.ref(w)

    def f(x):
        o = r()
        return x + 1 if o is None else x * o.v

    def kill():
        nonlocal w
        w = None
        gc.collect()

    return Setup(f, lambda: (t(3),), changes=[kill])


@case(lambda: (t(3),), skip="*")
def weakref_of_fresh(x):
    w = Weak(4)
    r = weakref.ref(w)
    a = r() is w
    del w
    return x + 1, a, r() is None


@case(lambda: (t(3),), skip="*")
def weak_dictionaries(x):
    k, v = Weak(1), Weak(2)
    wk, wv = weakref.WeakKeyDictionary(), weakref.WeakValueDictionary()
    wk[k] = 3
    wv["a"] = v
    r = (wk[k], wv["a"].v, len(wk), len(wv), k in wk)
    del k, v
    return x + 1, r, len(wk), len(wv)


@case(lambda: (t(3),), skip="*")
def weak_finalize(x):
    log = []
    w = Weak()
    weakref.finalize(w, log.append, 1)
    del w
    return x + 1, log


@case(lambda: (t(3),), skip="*")
def weak_methods_and_proxies(x):
    w = Weak(6)
    p = weakref.proxy(w)
    s = weakref.WeakSet([w])
    return x * p.v, len(s), w in s


@scenario(skip="*")
def finaliser_runs():
    log = []

    class Fin:
        def __del__(self):
            log.append("del")

    def f(x):
        o = Fin()
        log.append("made")
        del o
        log.append("after")
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: list(log))


test_class_library = cases.as_test(__name__)
