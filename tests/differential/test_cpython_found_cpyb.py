"""What CPython's tests of exceptions, functools and itertools have found (make cpython-tests)."""

import functools
import itertools
import sys

from differ import Cases, t

cases = Cases()
case = cases.case


class Reentrant:
    """An iterator that asks the iterator that reads it."""

    def __init__(self, again):
        self.again = again
        self.reader = None
        self.count = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.count += 1
        at = self.count
        if at in self.again:
            return next(self.reader)
        return at


class Plain:
    pass


class Derived(list):
    pass


@functools.singledispatch
def kind(value):
    return "other"


kind.register(int, lambda value: "int")


# ---- functools ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def dispatch_registers_between(x):
    @functools.singledispatch
    def named(value):
        return "other"

    named.register(int, lambda value: "int")
    before = named("a"), named(True), named(Derived())
    named.register(list, lambda value: "list")
    return x * 2, before, named("a"), named(True), named(Derived())


@case(lambda: (t(3),))
def dispatch_by_base(x):
    return x * 2, kind(True), kind(1.5)


@case(lambda: (t(3),))
def partial_is_not_written(x):
    made = functools.partial(max, 1)
    said = []
    for name in ("func", "args", "keywords"):
        try:
            setattr(made, name, None)
        except AttributeError as error:
            said.append(str(error))
    return x * 2, said, made(3)


# ---- itertools ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def count_past_the_largest(x):
    down = itertools.count(-sys.maxsize, -3)
    return x * 2, list(itertools.islice(itertools.count(sys.maxsize - 2), 5)), [next(down), next(down), next(down)], down


@case(lambda: (t(3),))
def islice_with_a_long_step(x):
    return x * 2, list(itertools.islice(itertools.count(), 1, 10, sys.maxsize)), list(itertools.islice(range(9), 2, None, sys.maxsize))


@case(lambda: (t(3),))
def pairwise_that_is_reentered(x):
    source = Reentrant({2})
    source.reader = pairs = itertools.pairwise(source)
    return x * 2, next(pairs), next(pairs)


@case(lambda: (t(3),))
def tee_that_is_reentered(x):
    source = Reentrant({1})
    one, source.reader = itertools.tee(source)
    try:
        next(one)
    except RuntimeError as error:
        return x * 2, type(error)


# ---- exceptions --------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def parts_of_exceptions_are_checked(x):
    said = []
    for name in ("__cause__", "__context__"):
        for value in (1, KeyError, None, ValueError(1)):
            made = Exception()
            try:
                setattr(made, name, value)
            except TypeError as error:
                said.append((name, str(error)))
        try:
            delattr(Exception(), name)
        except TypeError as error:
            said.append(str(error))
    return x * 2, said


@case(lambda: (t(3),))
def getattribute_says_what_it_lacks(x):
    plain = Plain()
    try:
        object.__getattribute__(plain, "missing")
    except AttributeError as error:
        return x * 2, str(error), error.name, error.obj is plain


@case(lambda: (t(3),), skip="*")
def text_after_a_part_is_set(x):
    error = UnicodeEncodeError("baz", "xxxxx", 1, 5, "foo")
    before = str(error)
    error.end = 2
    return x * 2, before, str(error)


test_cpython_found = cases.as_test(__name__)
