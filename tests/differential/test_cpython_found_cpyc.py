"""What CPython's own tests (make cpython-tests) have found about numbers, classes and the library."""

import dataclasses
import enum
import typing

from differ import Cases, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class OwnConversions(int):
    def __int__(self):
        return 42

    def __float__(self):
        return 43.0

    def __abs__(self):
        return "abs"

    def __round__(self, digits=None):
        return "round", digits


class OwnFloat(float):
    def __float__(self):
        return 42.0


class NumberText(str):
    def __float__(self):
        return 9.0


class Bits(enum.Flag):
    FIRST = 1
    SECOND = 2
    BOTH = 3


class Keys:
    KEY = "a"


class NotReversible:
    __reversed__ = None

    def __len__(self):
        return 0

    def __getitem__(self, i):
        raise IndexError


@case(lambda: (t(3),))
def conversions_of_a_number_class(x):
    n = OwnConversions(7)
    return x * 2, int(n), float(n), abs(n), round(n), round(n, 1), float(OwnFloat(3)), float(NumberText("8")), int(OwnFloat(3))


@case(lambda: (t(3),))
def new_of_a_base_is_not_safe(x):
    try:
        return int.__new__(bool, 0)
    except TypeError as error:
        return x * 2, str(error)


@case(lambda: (t(3),))
def reversed_is_none(x):
    try:
        return reversed(NotReversible())
    except TypeError as error:
        return x * 2, str(error)


@case(lambda: (t(3),))
def mapping_pattern_with_the_same_key_twice(x):
    found = {"a": 0, "b": 1}
    try:
        match found:
            case {Keys.KEY: y, "a": z}:
                return y, z
    except ValueError as error:
        return x * 2, str(error)


@case(lambda: (t(3),))
def member_of_a_flag_that_its_iterator_does_not_give(x):
    return x * 2, Bits.BOTH in Bits, Bits.FIRST in Bits


@case(lambda: (t(3),))
def parts_of_a_property_by_name(x):
    class Shape:
        @property
        def area(self):
            return 3

        @classmethod
        def make(cls):
            return cls.__name__

    made = [property(len), classmethod(len), staticmethod(len)]
    return x * 2, [hasattr(d, "__get__") for d in made], [hasattr(d, "__set__") for d in made], Shape.__dict__["make"].__get__(None, Shape)()


@case(lambda: (t(3),), skip="*")
def classmethod_around_a_classmethod(x):
    class Shape:
        @classmethod
        @classmethod
        def make(cls):
            return cls.__name__

    return x * 2, Shape.make()


@case(lambda: (t(3),), skip="*")
def dataclass_with_computed_defaults(x):
    class Items(list):
        pass

    messages = []
    try:

        @dataclasses.dataclass
        class Wrong:
            items: list = Items()

    except ValueError as error:
        messages.append(str(error)[:15])
    try:

        @dataclasses.dataclass
        class AlsoWrong:
            count: typing.ClassVar[int] = dataclasses.field(default_factory=int)

    except TypeError as error:
        messages.append(str(error))
    return x * 2, messages


test_cpython_found_cpyc = cases.as_test(__name__)
