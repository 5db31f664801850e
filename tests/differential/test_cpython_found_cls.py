"""What CPython's tests of classes, descriptors and builtins have found (make cpython-tests)."""

import abc
import collections
import collections.abc
import copyreg
import enum
import gc
import inspect
import sys
import types
import typing
import weakref

import pytest
import torch
from differ import Cases, outcome, t

import cdynamo

cases = Cases()
case = cases.case


# ---- isinstance and issubclass -----------------------------------------------------------------------------------------


class Proxy:
    def __init__(self, of):
        self.of = of

    @property
    def __class__(self):
        return type(self.of)


class Secret:
    @property
    def __class__(self):
        raise RuntimeError("no class")


class Refusing(type):
    def __instancecheck__(cls, instance):
        return hasattr(instance, "welcome")

    def __subclasscheck__(cls, subclass):
        raise ValueError("never")


class Club(metaclass=Refusing):
    pass


class Guest:
    pass


class Hooked(metaclass=abc.ABCMeta):
    @classmethod
    def __subclasshook__(cls, other):
        return "foo" in other.__dict__ if cls is Hooked else NotImplemented


class WithFoo:
    foo = 1


@typing.runtime_checkable
class HasX(typing.Protocol):
    x: int


class SetsX:
    def __init__(self, given):
        if given:
            self.x = 1


class LooksLikeClass:
    __bases__ = ()


@case(lambda: (t(3),))
def class_that_is_shown(x):
    return x * 2, isinstance(Proxy(1), int), isinstance(Proxy("a"), (int, str)), isinstance(Proxy(1), str), isinstance(Proxy(1), Proxy)


@case(lambda: (t(3),))
def class_that_is_not_told(x):
    return x * 2, outcome(lambda: isinstance(Secret(), int)), isinstance(Secret(), Secret)


@case(lambda: (t(3),))
def checks_of_a_metaclass(x):
    guest = Guest()
    before = isinstance(guest, Club)
    guest.welcome = True
    return x * 2, before, isinstance(guest, Club), outcome(lambda: issubclass(int, Club)), outcome(lambda: issubclass(Club, Club))


@case(lambda: (t(3),))
def a_hook_before_the_bases(x):
    return x * 2, issubclass(Hooked, Hooked), issubclass(WithFoo, Hooked), isinstance(WithFoo(), Hooked), isinstance(3, Hooked)


@case(lambda: (t(3),), skip="BuiltinCall")
def a_hook_that_is_made_inside(x):
    seen = []

    class Asks(metaclass=abc.ABCMeta):
        @classmethod
        def __subclasshook__(cls, other):
            seen.append(other.__name__)
            return True

    return x * 2, issubclass(int, Asks), isinstance("a", Asks), seen


@case(lambda: (t(3),))
def protocols_look_at_the_instance(x):
    return x * 2, isinstance(SetsX(True), HasX), isinstance(SetsX(False), HasX), outcome(lambda: issubclass(SetsX, HasX))


@case(lambda: (t(3),))
def unions_and_tuples_of_classes(x):
    return (
        x * 2,
        isinstance(1, int | str),
        isinstance(None, int | None),
        issubclass(bool, (str, (float, (int,)))),
        outcome(lambda: isinstance(1, list[int])),
        outcome(lambda: isinstance(1, (str, 3))),
        outcome(lambda: issubclass(1, int)),
        isinstance([], typing.List),  # noqa: UP006
        isinstance({}, collections.abc.Mapping),
    )


@case(lambda: (t(3),), skip="BuiltinCall")
def objects_that_look_like_classes(x):
    return x * 2, outcome(lambda: issubclass(LooksLikeClass(), int)), outcome(lambda: isinstance(1, LooksLikeClass()))


@case(lambda: (t(3),))
def type_of_a_class_asked_by_hand(x):
    return x * 2, type.__instancecheck__(int, True), type.__subclasscheck__(int, bool), type.__instancecheck__(str, 1)


# ---- making objects ----------------------------------------------------------------------------------------------------


class Base:
    def __new__(cls, which=None):
        return object.__new__(Derived if which else cls)

    def __init__(self, which=None):
        self.made_by = "Base"


class Derived(Base):
    def __init__(self, which=None):
        self.made_by = "Derived"


class TakesNothing:
    pass


class NewTakesAll:
    def __new__(cls, *args):
        return super().__new__(cls)


@case(lambda: (t(3),))
def init_of_what_new_gave(x):
    return x * 2, Base().made_by, Base(1).made_by


@case(lambda: (t(3),))
def arguments_that_object_refuses(x):
    return (
        x * 2,
        outcome(lambda: TakesNothing(1)),
        type(NewTakesAll(1, 2)).__name__,
        outcome(lambda: object.__new__(NewTakesAll, 1)),
        outcome(lambda: object.__init__(TakesNothing(), 1)),
        outcome(lambda: object.__init__(NewTakesAll(), 1)),
    )


@case(lambda: (t(3),))
def new_that_was_put_back(x):
    class Restored:
        def __new__(cls, value):
            return object.__new__(cls)

    Restored(1)
    Restored.__new__ = object.__new__
    return x * 2, outcome(lambda: Restored(1))


# ---- super and properties ----------------------------------------------------------------------------------------------


class Left:
    def meth(self, a):
        return f"A({a})"


class Right(Left):
    __super: typing.Any

    def meth(self, a):
        return f"B({a})" + self.__super.meth(a)


Right._Right__super = super(Right)


class TakesSelf:
    def meth(self):
        super()


@case(lambda: (t(3),))
def super_without_an_object_in_a_class_made_inside(x):
    class Below(Right):
        def meth(self, a):
            return f"C({a})" + self.__super.meth(a)

    Below._Below__super = super(Below)
    return x * 2, Right().meth(3), Below().meth(3)


@case(lambda: (t(3),))
def bad_calls_of_super(x):
    cell = (lambda v: lambda: v)(1).__closure__[0]
    return (
        x * 2,
        outcome(lambda: super(1, int)),
        outcome(lambda: super(int, int, int)),
        outcome(lambda: super(token=1)),
        outcome(lambda: TakesSelf.meth(cell)),
    )


class Outer:
    class WithProperty:
        nothing = property()
        unnamed = None

    WithProperty.unnamed = property()


@case(lambda: (t(3),))
def parts_that_a_property_lacks(x):
    o = Outer.WithProperty()
    return (
        x * 2,
        outcome(lambda: o.nothing),
        outcome(lambda: setattr(o, "nothing", 1)),
        outcome(lambda: delattr(o, "nothing")),
        outcome(lambda: o.unnamed),
        outcome(lambda: setattr(o, "unnamed", 1)),
    )


class Slotted:
    __slots__ = ("a", "__weakref__")
    fixed = 1


@case(lambda: (t(3),))
def attributes_without_room(x):
    o = Slotted()
    return x * 2, outcome(lambda: setattr(o, "fixed", 2)), outcome(lambda: setattr(o, "other", 2)), o.__weakref__, outcome(lambda: o.a)


@case(lambda: (t(3),))
def descriptors_called_by_hand(x):
    class Local:
        __slots__ = ("a",)

    o = Local()
    o.a = 3
    get = Slotted.__dict__["a"].__get__
    return x * 2, Local.a.__get__(o), outcome(lambda: get(o)), outcome(lambda: get(None)), type.__dict__["__mro__"].__get__(bool)


@case(lambda: (t(3),), skip="UnsupportedDescriptor")
def classmethod_around_a_number(x):
    return x * 2, outcome(classmethod(1).__get__(1))


# ---- comparison, operators ---------------------------------------------------------------------------------------------


class Calls:
    def __init__(self, log):
        self.log = log


class LeftEq(Calls):
    def __eq__(self, other):
        self.log.append("LeftEq.__eq__")
        return NotImplemented

    __hash__ = None


class RightNe(LeftEq):
    def __eq__(self, other):
        self.log.append("RightNe.__eq__")
        return NotImplemented

    def __ne__(self, other):
        self.log.append("RightNe.__ne__")
        return NotImplemented


class Alien(int):
    __eq__ = str.__eq__
    __add__ = str.__add__
    __hash__ = None


@case(lambda: (t(3),))
def order_of_comparisons(x):
    log = []
    left, right = LeftEq(log), RightNe(log)
    answers = left != right, right != left, left == right, object.__ne__(left, right)
    return x * 2, answers, log


@case(lambda: (t(3),))
def wrappers_of_another_class(x):
    a = Alien(1)
    return x * 2, outcome(lambda: a == a), outcome(lambda: a + a)


@case(lambda: (t(3),))
def cells_compare_by_contents(x):
    def cell(*given):
        if given:
            v = given[0]
        return (lambda: v).__closure__[0]

    return x * 2, cell(1) < cell(2), cell("a") == cell("a"), cell(3) != cell(3), cell() == cell(), cell() < cell(0), cell(0) <= cell()


@case(lambda: (t(3),))
def messages_of_operators_in_place(x):
    def power():
        a = None
        a **= 1

    def minus():
        a = "x"
        a -= 1

    def objects():
        a = TakesNothing()
        a **= TakesNothing()

    return x * 2, outcome(power), outcome(minus), outcome(objects), outcome(lambda: None**1)


# ---- classes -----------------------------------------------------------------------------------------------------------


class Named:
    def __set_name__(self, owner, name):
        1 / 0


@case(lambda: (t(3),))
def set_name_that_raises(x):
    try:

        class Broken:
            attr = Named()
    except Exception as error:  # 3.12 adds a note to what was raised
        return x * 2, str(error), type(error), type(error.__cause__), getattr(error, "__notes__", None)


@case(lambda: (t(3),))
def classcell_that_is_no_cell(x):
    try:

        class Broken:
            __classcell__ = 42
    except TypeError as error:
        return x * 2, str(error)


@case(lambda: (t(3),))
def mro_is_a_new_list(x):
    class Local(Guest):
        pass

    Guest.mro().append(1)
    return x * 2, Guest.mro(), [c.__name__ for c in Local.mro()], type(Local.mro())


@case(lambda: (t(3),))
def classes_in_tuples(x):
    class Local:
        pass

    pair = (Local, 1)
    pair += (2,)
    return x * 2, pair[0] is Local, type(Local()) is pair[0], {Local: 1}[pair[0]]


@case(lambda: (t(3),), skip="UnsupportedIndexing")
def alias_of_a_class_made_inside(x):
    class Local(collections.abc.Callable):
        def __call__(self):
            return None

    return x * 2, Local[[int], str]().__class__ is Local


@case(lambda: (t(3),), skip="UnsupportedOperator")
def union_with_a_class_made_inside(x):
    made = collections.namedtuple("made", ["a"])
    return x * 2, (made | str).__args__[0] is made, isinstance(made(1), made | int)


@case(lambda: (t(3),))
def class_methods_of_builtin_types(x):
    kind = bytes

    class Kept(bytes):
        def __new__(cls, value):
            made = kind.__new__(cls, value)
            made.foo = "bar"
            return made

    b, n = Kept.fromhex("1a2B30"), Alien.from_bytes(b"\1\2", "big")
    return x * 2, bytes(b), type(b) is Kept, b.foo, int(n), type(n)


class Modules(types.ModuleType):
    def __getattribute__(self, name):
        return types.ModuleType.__getattribute__(self, name) if name.startswith("__") else "read " + name


module = Modules("module")


@case(lambda: (t(3),), skip="UnknownFunction")
def module_with_its_own_reading(x):
    return x * 2, module.anything, module.__name__


@case(lambda: (t(3), types.ModuleType("made")), skip="AttributeWrite")
def class_of_a_module(x, made):
    made.__class__ = Modules
    return x * 2, made.other


@case(lambda: (t(3),))
def abstract_flag(x):
    return x * 2, inspect.isabstract(Guest), inspect.isabstract(collections.abc.Mapping)


def test_flags_follow_the_class():
    class Shape(metaclass=abc.ABCMeta):
        pass

    f = cdynamo.compile(lambda: inspect.isabstract(Shape), backend="eager")
    assert f() is False
    Shape.area = abc.abstractmethod(lambda self: 1)
    abc.update_abstractmethods(Shape)
    assert f() is True


# ---- what a program does when a class is made --------------------------------------------------------------------------


class Tagging(type):
    def __new__(mcls, name, bases, names, **keywords):
        names = {**names, "tag": name.lower() + str(keywords.get("extra", ""))}
        return super().__new__(mcls, name, bases, names)

    def __init__(cls, name, bases, names, **keywords):
        super().__init__(name, bases, names)
        cls.count = len(names)


class Tagged(metaclass=Tagging):
    def who(self):
        return "tagged"


class Preparing(type):
    @classmethod
    def __prepare__(mcls, name, bases):
        return {"given": name}


class Calling(type):
    def __call__(cls, *args):
        return "called", super().__call__(*args)


registered = []


class Plugin:
    def __init_subclass__(cls, /, key=None, **keywords):
        super().__init_subclass__(**keywords)
        cls.key = key or cls.__name__.lower()
        registered.append(cls.__name__)


class HookedList(list):
    def __init_subclass__(cls):
        cls.hooked = cls.__name__


@case(lambda: (t(3),))
def metaclass_with_new_and_init(x):
    class A(metaclass=Tagging):
        def f(self):
            return self.tag

    class B(A, extra=3):
        def f(self):
            return super().f() + "!"

    class C(Tagged):
        def who(self):
            return "c " + super().who()

    made = Tagging("Made", (B,), {"q": 1})
    return x * 2, A.tag, A.count, B().f(), type(B).__name__, isinstance(B(), A), C().who(), C.tag, made.q, made().f(), made


@case(lambda: (t(3),))
def metaclass_that_prepares(x):
    class A(metaclass=Preparing):
        text = given + "!"  # noqa: F821

    return x * 2, A.text, A.given


@case(lambda: (t(3),))
def metaclass_that_is_called(x):
    class A(metaclass=Calling):
        def __init__(self, v):
            self.v = v

    word, made = A(x + 1)
    return word, made.v, type(made) is A


@case(lambda: (t(3),))
def metaclass_made_inside(x):
    class Meta(type):
        def __new__(mcls, name, bases, names):
            names["z"] = x + 1
            return type.__new__(mcls, name, bases, names)

    class A(metaclass=Meta):
        pass

    return A.z, type(A).__name__, type(A) is Meta


@case(lambda: (t(3),))
def init_subclass_with_keywords(x):
    class A(Plugin):
        pass

    class B(A, key="bee"):
        pass

    made = type("Third", (B,), {"z": 1})
    return x * 2, A.key, B.key, made.key, A.__bases__, [c.__name__ for c in made.__mro__], B()


@case(lambda: (t(3),))
def init_subclass_that_keeps_the_class(x):
    class Base:
        subclasses: typing.ClassVar = []

        def __init_subclass__(cls):
            Base.subclasses.append(cls)

    class C(Base):
        pass

    class D(Guest, Base):
        pass

    class E(HookedList):
        pass

    return x * 2, Base.subclasses[0] is C, Base.subclasses[1] is D, D.__bases__[0], E([1]), E.hooked, type(E()).__bases__


@case(lambda: (t(3),))
def init_subclass_that_raises(x):
    def make():
        class Broken(Plugin, bad=1):
            pass

    return x * 2, outcome(make)


@case(lambda: (t(3),), skip="ClassStatement")
def init_subclass_of_a_class_with_slots(x):
    class Small(Plugin):
        __slots__ = ("a",)

    return x * 2, Small.key, Small().__slots__


# ---- dir ---------------------------------------------------------------------------------------------------------------


class Shows:
    def __dir__(self):
        return ["b", "a"]


@case(lambda: (t(3),))
def names_of_objects(x):
    def local():
        pass

    local.mark = 1
    guest = Guest()
    guest.zeal = 1
    guest.zest = 1
    del guest.zest
    added = [n for n in dir(guest) if n.startswith("z")]
    return x * 2, added, dir(Shows()), "mark" in dir(local), "upper" in dir("a"), "append" in dir([1]), dir(Derived) == dir(Derived())


def test_dir_sees_new_attributes():
    class Local:
        pass

    o = Local()
    f = cdynamo.compile(lambda: [n for n in dir(o) if n[0] != "_"], backend="eager")
    assert f() == []
    Local.first = 1
    assert f() == ["first"]
    o.second = 2
    assert f() == ["first", "second"]


# ---- lengths, copies ---------------------------------------------------------------------------------------------------


class Hinted:
    def __init__(self, log, length=None, hint=None):
        self.log, self.length, self.hint = log, length, hint
        self.left = 2

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        return self.left

    def __len__(self):
        self.log.append("len")
        if self.length is None:
            raise TypeError
        return self.length

    def __length_hint__(self):
        self.log.append("hint")
        return self.hint


@case(lambda: (t(3),))
def lengths_that_are_asked_for(x):
    log = []
    answers = [
        list(Hinted(log, 2)),
        tuple(Hinted(log, hint=NotImplemented)),
        [*Hinted(log, 5)],
        sorted(Hinted(log, hint=1)),
        outcome(lambda: list(Hinted(log, hint="a"))),
        outcome(lambda: list(Hinted(log, -1))),
        outcome(lambda: len(Hinted(log, sys.maxsize + 1))),
        sum(Hinted(log, 3)),
    ]
    return x * 2, answers, log


@case(lambda: (t(3),))
def sums_that_are_refused(x):
    return x * 2, outcome(lambda: sum([], "")), outcome(lambda: sum([], b"")), outcome(lambda: sum(["a"], "b")), sum([[1], [2]], [])


class Arguments:
    def __init__(self, given):
        self.given = given

    def __getnewargs_ex__(self):
        return self.given


class ClassState(list):
    @classmethod
    def __getstate__(cls):
        return cls.__name__


@case(lambda: (t(3),))
def reducing(x):
    def reduced(given):
        return outcome(lambda: Arguments(given).__reduce_ex__(2)[1][1:])

    made = ClassState([1]).__reduce_ex__(2)
    slots = Slotted()
    slots.a = 1
    return x * 2, [reduced(g) for g in (((1,), {"a": 2}), (1, 2), ((1,), 2), 3, ())], made[2], list(made[3]), slots.__reduce_ex__(2)[2]


@case(lambda: (t(3),))
def keywords_that_are_no_names(x):
    return x * 2, outcome(lambda: round(1, **{2: 3}))


@case(lambda: (t(3),))
def importing_by_name_twice(x):
    return x * 2, outcome(lambda: __import__("sys", name="sys"))


# ---- enums and texts ---------------------------------------------------------------------------------------------------


class Iron(enum.IntFlag, boundary=enum.STRICT):
    ONE = 1
    TWO = 2


class Text(str):
    pass


@case(lambda: (t(3),))
def text_of_a_flag_made_inside(x):
    class Simple(enum.IntFlag, boundary=enum.KEEP):
        SINGLE = 1

    both = Simple.SINGLE | Iron.TWO
    return x * 2, str(both), repr(both), f"{both}"


@case(lambda: (t(3),), skip="*")
def text_of_a_subclass_as_key(x):
    out = {}
    for name in [Text("spam"), Text("eggs")]:
        torch._dynamo.graph_break()
        out[name] = x + 1
    return out, [type(k) for k in out]


# ---- deaths that are seen ----------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="*")
def deleting_from_a_list(x):
    objects = [Guest() for _ in range(3)]
    seen = weakref.WeakKeyDictionary()
    for i, o in enumerate(objects):
        seen[o] = i
    del o
    before = len(seen)
    del objects[0]
    return x * 2, before, len(seen)


shared = Guest()
shared.mark = 3
watchers = weakref.WeakKeyDictionary({shared: 5})
reference = weakref.ref(shared)
with_callback = weakref.ref(shared, print)


@case(lambda: (t(3), shared))
def references_to_what_exists(x, guest):
    made = weakref.ref(guest)
    return (
        x * made().mark,
        made() is guest,
        made is weakref.ref(guest),
        isinstance(made, weakref.ref),
        bool(made),
        reference().mark,
        reference() is guest,
    )


@case(lambda: (t(3), shared))
def references_that_leave(x, guest):
    made = weakref.ref(guest)
    return x * 2, made, [made], made is reference


@case(lambda: (t(3), shared, reference, with_callback))
def references_that_are_the_same(x, guest, plain, other):
    before = plain() is guest, other() is guest
    made = weakref.ref(guest)
    return x * 2, before, made is plain, made is other, made is None, plain is other


@case(lambda: (t(3), shared))
def reading_a_weak_dictionary(x, guest):
    return x * watchers[guest], guest in watchers, watchers.get(guest), watchers.get(guest, 1), 3 in watchers, outcome(lambda: weakref.ref(3))


@case(lambda: (t(3),), skip="UnknownFunction")
def references_to_what_is_made_inside(x):
    made = weakref.ref(Guest())
    return x * 2, made()


def test_weak_dictionary_that_changes():
    class Local:
        pass

    first, second = Local(), Local()
    table = weakref.WeakKeyDictionary({first: 1})
    f = cdynamo.compile(lambda o, x: x + table.get(o, 10), backend="eager")
    x = t(3)
    assert torch.equal(f(first, x), x + 1)
    assert torch.equal(f(second, x), x + 10)
    table[second] = 4
    assert torch.equal(f(second, x), x + 4)
    table[first] = 7
    assert torch.equal(f(first, x), x + 7)
    del first
    gc.collect()
    assert len(table) == 1


@case(lambda: (t(3),))
def text_of_an_id(x):
    guest = Guest()
    return x * 2, type(str(id(guest))), type(f"{id(guest)}")


@case(lambda: (t(3),), skip="*")
def callbacks_of_local_functions(x):
    data = {}

    def remove(key):
        del data[key]

    def local():
        pass

    data[weakref.ref(local, remove)] = None
    return x * 2, len(data)


@case(lambda: (t(3),), skip="*")
def bases_of_a_class_with_subclasses(x):
    class A:
        pass

    class B:
        pass

    class C(A, B):
        pass

    class D(A, B):
        pass

    class E(C, D):
        pass

    def change():
        C.__bases__ = (B, A)

    return x * 2, outcome(change)[0]


def test_no_model_is_left_among_subclasses():
    class Parent:
        pass

    def f(x):
        class Child(Parent):
            pass

        return x + Child.__name__.__len__()

    compiled = cdynamo.compile(f, backend="eager")
    assert torch.equal(compiled(t(3)), f(t(3)))
    gc.collect()
    assert Parent.__subclasses__() == []


def test_patched_builtins_are_not_met_by_the_engine():
    calls = []

    def f(x):
        int_ = __builtins__["int"] if isinstance(__builtins__, dict) else __builtins__.int
        return x + int_(1)

    import builtins

    real = builtins.int
    try:
        builtins.int = lambda *args: calls.append(args) or real(*args)
        assert torch.equal(cdynamo.compile(f, backend="eager")(t(3)), t(3) + 1)
    finally:
        builtins.int = real
    assert len(calls) == 1


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="copyreg reads flags in another way")
def test_reduce_with_an_old_protocol():
    def f(x):
        class Local:
            def __getstate__(self):
                return "state"

        o = Local()
        made = o.__reduce_ex__(0)
        return x * 2, made[0] is copyreg._reconstructor, made[1][0] is Local, made[2]

    assert cdynamo.compile(f, backend="eager")(t(3))[1:] == f(t(3))[1:] == (True, True, "state")


test_cpython_found_cls = cases.as_test(__name__)
