"""Classes whose bases, names and abstract methods change after the capture; class statements as CPython makes them; generic aliases."""

import abc
import collections
import types

from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


def three_classes():
    class A:
        def m(self, x):
            return x + 1

    class B:
        def m(self, x):
            return x * 10

    class C(A):
        pass

    return A, B, C


@scenario(after_change=(1,))
def bases_change_below_isinstance():
    A, B, C = three_classes()
    c = C()
    return Setup(lambda x: (x + 1, isinstance(c, A), isinstance(c, B)), lambda: (t(3),), changes=[lambda: setattr(C, "__bases__", (B,))])


@scenario(after_change=(1,))
def bases_change_below_issubclass():
    A, B, C = three_classes()
    return Setup(lambda x: (x + 1, issubclass(C, A), issubclass(C, (int, B))), lambda: (t(3),), changes=[lambda: setattr(C, "__bases__", (B,))])


@scenario(after_change=(1,))
def bases_change_below_a_pattern():
    A, B, C = three_classes()
    c = C()

    def f(x):
        match c:
            case A():
                return x + 1
            case B():
                return x + 2

    return Setup(f, lambda: (t(3),), changes=[lambda: setattr(C, "__bases__", (B,))])


@scenario(after_change=(1,))
def bases_change_below_a_handler():
    class A(Exception):
        pass

    class B(Exception):
        pass

    class C(A):
        pass

    def f(x):
        try:
            raise C(1)
        except A:
            return x + 1
        except B:
            return x + 2

    return Setup(f, lambda: (t(3),), changes=[lambda: setattr(C, "__bases__", (B,))])


@scenario(after_change=(1, 1))
def bases_change_below_super():
    A, B, C = three_classes()

    class D(C):
        def m(self, x):
            return super().m(x) + 100

    d = D()
    changes = [lambda: setattr(C, "__bases__", (B,)), lambda: setattr(B, "m", lambda self, x: x)]
    return Setup(lambda x: d.m(x), lambda: (t(3),), changes=changes)


@scenario(after_change=(1, 0))
def abstract_no_more():
    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self): ...

    class Square(Shape):
        pass

    def change():
        Square.area = lambda self: 4
        abc.update_abstractmethods(Square)

    return Setup(lambda x: (x + 1, outcome(lambda: Square().area())), lambda: (t(3),), changes=[change, lambda: None])


@case(lambda: (t(3),))
def bases_that_are_no_classes(x):
    class Template:
        def __init__(self, *args):
            self.args = args

    def number():
        class C(1):
            pass

    def function():
        class C(len):
            pass

    def beside_a_class():
        class C(int, 1):
            pass

    class Made(Template("a")):
        k = 2

    by_type = outcome(lambda: type("C", (1,), {})), outcome(lambda: type("C", (int, "a"), {}))
    return x * Made.args[2]["k"], type(Made), Made.args[0], [outcome(f) for f in (number, function, beside_a_class)], by_type


@case(lambda: (t(3),))
def metaclass_that_is_a_function(x):
    def make(name, bases, namespace, **options):
        return name, bases, sorted(k for k in namespace if k[0] != "_"), options

    make.__prepare__ = lambda name, bases, **options: {"prepared": x}

    class C(int, metaclass=make, z=1):
        a = prepared * 2  # noqa: F821

    def uncallable():
        class D(metaclass=1):
            pass

    return x + 1, C, outcome(uncallable)


@case(lambda: (t(3),))
def namespace_that_is_an_ordered_dict(x):
    class Meta(type):
        @classmethod
        def __prepare__(mcs, name, bases, **options):
            return collections.OrderedDict(first=name, options=tuple(options))

        def __new__(mcs, name, bases, namespace, **options):
            namespace.move_to_end("first")
            return super().__new__(mcs, name, bases, dict(namespace, order=[k for k in namespace if k[0] != "_"]))

        def __init__(cls, name, bases, namespace, **options):
            super().__init__(name, bases, namespace)

    class C(metaclass=Meta, alpha=1):
        b = 2
        a = 1

    return x * C.b, C.order, C.options, C.first


@case(lambda: (t(3),))
def keywords_for_nobody(x):
    return x + 1, outcome(lambda: type("S", (object,), {}, tag=1)), outcome(lambda: type("S", (dict,), {}, tag=1))


class Box:
    def __class_getitem__(cls, item):
        return types.GenericAlias(cls, item)

    def __init__(self, *args):
        self.args = args


class Fixed(Box):
    __slots__ = ()

    def __setattr__(self, name, value):
        if name == "__orig_class__":
            raise AttributeError(name)
        super().__setattr__(name, value)


@case(lambda: (t(3),), skip="ObjectConstruction")
def generic_aliases_are_called(x):
    made, fixed = Box[int, str](x, 2), Fixed[int](x)
    return made.args[0] * 2, made, made.__orig_class__ == Box[int, str], hasattr(fixed, "__orig_class__"), list[int]([1]), fixed


@case(lambda: (t(3),))
def exceptions_of_several_classes(x):
    class Plain(Exception):
        def __init__(self, value, note=None):
            super().__init__(value)
            self.note = note

    class Missing(Plain, KeyError):
        pass

    class Wrong(Plain, ArithmeticError):
        pass

    caught = []
    for make in (lambda: Missing("a", note=x), lambda: Wrong(1), lambda: LookupError(), lambda: AssertionError(1, 2)):
        try:
            raise make()
        except (KeyError, ArithmeticError, LookupError, AssertionError) as error:
            caught.append(error)
    return caught[0].note * 2, caught, outcome(lambda: KeyError.__init__(caught[0], a=1))


test_wild8_classes = cases.as_test(__name__)
