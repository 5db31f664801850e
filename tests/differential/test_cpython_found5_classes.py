"""Found by CPython's own tests: class statements, conversions and namespaces."""

import abc
import gc
import types

from differ import Cases, t

import cdynamo

cases = Cases()
case = cases.case


class DropsCell(type):
    def __new__(cls, name, bases, namespace):
        namespace.pop("__classcell__", None)
        return super().__new__(cls, name, bases, namespace)


class UsesCellTwice(type):
    def __new__(cls, name, bases, namespace):
        made = super().__new__(cls, name, bases, namespace)
        type("Other", (), namespace)
        return made


class HandsCellOn(type):
    def __new__(cls, name, bases, namespace):
        return super().__new__(cls, name + "X", bases, namespace)


def message(function):
    try:
        return function()
    except (RuntimeError, TypeError) as e:
        return type(e), str(e).split("<class")[0]


@case(lambda: (t(3),))
def class_cell_that_the_metaclass_drops(x):
    def make():
        class Made(metaclass=DropsCell):
            def f(self):
                return __class__

    return x + 1, message(make)


@case(lambda: (t(3),))
def class_cell_that_the_metaclass_uses_twice(x):
    def make():
        class Made(metaclass=UsesCellTwice):
            def f(self):
                return __class__

    return x + 1, message(make)


@case(lambda: (t(3),))
def class_cell_that_the_metaclass_hands_on(x):
    class Made(metaclass=HandsCellOn):
        def f(self):
            return __class__.__name__

    return x + 1, Made().f()


class Descriptor:
    calls = 0

    def __init__(self, function):
        self.function = function

    def __get__(self, instance, owner):
        seen.append(owner.__name__)
        return self.function.__get__(instance, owner)


seen: list[str] = []


class Bytes:
    __bytes__ = Descriptor(lambda self: b"abc")


@case(lambda: (t(3),))
def special_method_is_bound_once(x):
    seen.clear()
    return x + 1, bytes(Bytes()), list(seen)


class LooksLikeNamespace(str):
    __class__ = types.SimpleNamespace  # type: ignore[assignment]


class DerivedNamespace(types.SimpleNamespace):
    pass


@case(lambda: (t(3),))
def namespaces_are_compared_by_type(x):
    n = types.SimpleNamespace(a=1)
    return x + 1, n == LooksLikeNamespace(), n != LooksLikeNamespace(), n == DerivedNamespace(a=1), n != DerivedNamespace(a=2)


@case(lambda: (t(3),), skip="*")
def classes_live_as_long_as_their_variables(x):
    class Base(metaclass=abc.ABCMeta):  # noqa: B024
        pass

    class Derived(Base):
        pass

    Derived.register(int)
    cdynamo.graph_break()
    gc.collect()
    return x + 1, isinstance(42, Base), len(Base.__subclasses__())


test = cases.as_test(__name__)
