"""Special methods called by name, calls that are wrong, texts of tensors that fail, exceptions that look at their arguments."""

import collections
import functools
import operator

import torch
from differ import Cases, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class Unit:
    def scaled(self, x, k=1):
        return x * k


@case(lambda: (t(3),))
def calls_by_name(x):
    u = Unit()

    def f(v, k=2):
        return v * k

    of_methods = u.scaled.__call__(x), u.scaled.__call__(x, k=3), Unit.scaled.__call__(u, x), list(map(u.scaled.__call__, [x]))[0]
    return (
        of_methods,
        f.__call__(x),
        f.__call__(x, k=5),
        len.__call__([1]),
        [1, 2].count.__call__(1),
        Unit.__call__().scaled(x),
        str.upper.__call__("a"),
    )


@case(lambda: (t(3),))
def methods_of_a_function(x):
    def f():
        return 1

    def g():
        return 2

    f.__setattr__("tag", x)
    tag = f.__getattribute__("tag")
    f.__delattr__("tag")
    equal = f.__eq__(f), f.__eq__(g), f.__ne__(g), f.__lt__(g), outcome(lambda: f < g)
    bound = f.__get__(3).__self__, outcome(lambda: f.__get__(None)), f.__get__(None, int) is f
    return tag * 2, equal, hasattr(f, "tag"), f.__init__(), bound, type(f.__init__).__name__


@case(lambda: (t(3),))
def methods_of_a_method(x):
    u = Unit()
    m = u.scaled
    return m(x), m == u.scaled, m.__name__, m.__doc__, m.__func__ is Unit.scaled, hasattr(m, "nothing")


@case(lambda: (t(3),), skip="*")
def methods_of_none(x):
    return (
        x + 1,
        None.__bool__(),
        None.__eq__(None),
        None.__ne__(3),
        None.__repr__(),
        None.__hash__() == hash(None),
        None.__dir__() != [],
        None.__eq__(3),
    )


@case(lambda: (t(3), t(1)))
def format_of_a_tensor_fails(x, y):
    scalar = y.sum()
    of_many = outcome(lambda: f"{x:>10}"), outcome(lambda: format(x, ".2f")), outcome(lambda: x.__format__("a")), outcome(lambda: f"{x * 2:d}")
    return x + 1, of_many, f"{scalar:.3f}", f"{x!s:>40}", f"{x}"


@case(lambda: (t(3),), skip="UnsupportedText")
def format_of_a_number_fails(x):
    return x + 1, outcome(lambda: f"{x.sum():zz}"), outcome(lambda: f"{f'{x}':d}")


@case(lambda: (t(3),), skip="*")
def wrong_numbers_of_arguments(x):
    def g():
        yield 1

    of_generators = (
        lambda: g().send(),
        lambda: g().throw(),
        lambda: g().__next__(1),
        lambda: g().__iter__(1),
        lambda: g().throw(1, 2),
        lambda: g().close(1),
    )
    of_tensors = lambda: x.__getitem__(), lambda: x.__setitem__(), lambda: x.__setitem__(0), lambda: x.__iter__(1), lambda: x.__len__(1)
    of_objects = (
        lambda: property().__get__(1), lambda: property(q=1), lambda: [].__setattr__(1, 2), lambda: object().__delattr__([1]),
        lambda: g().__delattr__([1]), lambda: object().__getattribute__(1), lambda: object.__setattr__(1), lambda: [].__format__(None),
    )  # fmt: skip
    return x + 1, [outcome(f) for f in (*of_generators, *of_tensors, *of_objects)]


@case(lambda: (t(3),))
def refusals_in_the_words_of_their_functions(x):
    def number():
        n = 3
        del n[0]

    def pair():
        n = (1,)
        del n[0]

    def by_name():
        n = (1,)
        del n["a"]

    actions = (
        lambda: round(x), lambda: round(x, 1), number, pair, by_name, lambda: operator.countOf(1, 2), lambda: operator.indexOf(1, 2),
        lambda: functools.reduce(operator.add, 3),
    )  # fmt: skip
    return x + 1, [outcome(f) for f in actions]


class Number(int):
    pass


class Text(str):
    pass


class Judge(str):
    def __gt__(self, other):
        return "judged", other


@case(lambda: (t(3),), skip="*")
def classes_are_named_in_refusals(x):
    n, s = Number(3), Text("a")
    actions = (
        lambda: n + [], lambda: [] + n, lambda: s / 2, lambda: 2 - s, lambda: n < s, lambda: s >= 1, lambda: None > n, lambda: n | s, lambda: "a" + n,
        lambda: ",".join(n), lambda: ",".join(object()), lambda: type(1, (), {}), lambda: type("a", [], {}), lambda: type("a", (), None),
    )  # fmt: skip
    return x + 1, [outcome(f) for f in actions], n + 1, s + "b", n < 4, n < Judge("a")


@case(lambda: (t(2),), skip="OperandKind")
def deque_is_no_list_of_sizes(x):
    sizes = collections.deque([1, 2])
    return x + 1, outcome(lambda: torch.zeros(sizes)), outcome(lambda: x.reshape(sizes))


@case(lambda: (t(3),))
def memory_errors_keep_their_arguments(x):
    return x + 1, MemoryError(x, 1), [MemoryError(1)], MemoryError()


@case(lambda: (t(3),), skip="ObjectConstruction")
def exceptions_look_at_their_arguments(x):
    return x + 1, outcome(lambda: UnicodeDecodeError(x)), outcome(lambda: SyntaxError("a", [1])), SyntaxError(x)


@case(lambda: (t(3),))
def bytearray_with_a_tuple(x):
    return x + 1, bytearray(b"%d-%s").__mod__((1, b"z")), bytearray(b"a").join((b"1", bytearray(b"2")))


class Missing(dict):
    def __missing__(self, key):
        return "missing", key

    def __getitem__(self, key):
        return "own", super().__getitem__(key)


@case(lambda: (t(3), Missing(a=1)))
def missing_items_through_super(x, d):
    def caught(key):
        try:
            return dict.__getitem__(d, key)
        except KeyError:
            return "KeyError"

    return x + 1, caught("g"), d["a"], d["b"], dict.__getitem__(d, "c"), outcome(lambda: dict.__getitem__({}, "d")), Missing()["e"], d.get("f")


test_wild8_methods = cases.as_test(__name__)
