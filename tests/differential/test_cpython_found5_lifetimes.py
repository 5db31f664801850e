"""Found by CPython's own tests: captures keep no object of the program alive, and see where one dies."""

import contextlib
import gc
import sys
import weakref

import pytest
import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case = cases.case
scenario = cases.scenario


class Thing:
    def __init__(self, n=0):
        self.n = n


class Named(Thing):
    def __eq__(self, other):
        return isinstance(other, Named) and self.n == other.n

    def __hash__(self):
        return hash(self.n)


class Counted:
    alive = 0

    def __new__(cls):
        cls.alive += 1
        return object.__new__(cls)

    def __del__(self):
        Counted.alive -= 1


# ---- deaths inside a capture -------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="*")
def reference_after_the_variable_is_overwritten(x):
    thing = Thing()
    ref = weakref.ref(thing)
    x = x + 1
    thing = None
    return x, ref() is None, thing


@case(lambda: (t(3),), skip="*")
def reference_after_the_cell_is_overwritten(x):
    thing = Thing()

    def raises():
        inner = thing
        raise ValueError(inner)

    ref = weakref.ref(thing)
    try:
        raises()
    except ValueError:
        pass
    thing = None
    return x + 1, ref() is None


@case(lambda: (t(3),))
def reference_to_what_another_variable_holds(x):
    thing = other = Thing(2)
    ref = weakref.ref(thing)
    thing = None
    return x * ref().n, ref() is other, thing


@case(lambda: (t(3),), skip="*")
def callback_where_the_variable_is_overwritten(x):
    seen = []
    thing = Thing()
    ref = weakref.ref(thing, lambda r: seen.append("gone"))
    x = x + 1
    thing = 1
    before = list(seen)
    return x, before, thing, ref() is None


@case(lambda: (t(3),), skip="*")
def dictionary_shrinks_where_its_key_dies(x):
    table = weakref.WeakKeyDictionary()
    thing = Thing()
    table[thing] = 1
    before = len(table)
    thing = x + 1
    return before, len(table), thing


@case(lambda: (t(3),), skip="*")
def list_of_objects_with_finalizers_is_deleted(x):
    held = [Counted(), Counted()]
    x = x + Counted.alive
    del held
    return x, Counted.alive


@case(lambda: (t(3),), skip="*")
def references_that_are_not_read_any_more_live_on(x):
    thing = Thing()
    proxy = weakref.proxy(thing)
    ref = weakref.ref(thing)
    x = x + (ref() is thing)
    count = weakref.getweakrefcount(thing)
    return x, count, proxy.n


@case(lambda: (t(3),), skip="UnsupportedOperator")
def memory_error_inside_with(x):
    left = []

    @contextlib.contextmanager
    def watched():
        try:
            yield
        except BaseException as e:
            left.append(type(e))
            raise

    try:
        with watched():
            "a" * (sys.maxsize - 100)
    except MemoryError:
        left.append("memory")
    return x + 1, left


# ---- captures hold nothing ---------------------------------------------------------------------------------------------


@scenario(captures=(1, 0))
def keys_of_a_dict_that_die_later():
    thing = Thing()
    table = {thing: 2}
    ref = weakref.ref(thing)

    def f(x):
        return x * sum(table[key] for key in table)

    def drop():
        nonlocal thing
        table.clear()
        thing = None

    return Setup(f, lambda: (t(3),), watch=lambda: ref() is None, changes=[drop], cleanup=gc.collect)


test = cases.as_test(__name__)


def dies(make, use):
    """Whether what `make` gives dies although a capture of `use` with it lives."""
    compiled = cdynamo.compile(use, backend="eager")
    made = make()
    expected = use(*made)
    assert str(compiled(torch.ones(2), *made[1:])) == str(expected)
    assert len(compiled.entries()) == 1
    refs = [weakref.ref(o) for o in made[1:] if type(o).__weakrefoffset__]
    del made, expected
    gc.collect()
    return all(ref() is None for ref in refs), compiled


def local_class():
    class Local:
        n = 2
        parts = [1]

        @property
        def twice(self):
            return self.n * len(type(self).parts) * 2

        @staticmethod
        def three():
            return Local.n + 1

        def four(self):
            return self.three() + __class__.n - 1

    return torch.ones(2), Local


def with_class(x, cls):
    made = cls()
    return x * made.twice + made.four() + cls.three()


def with_function(x, fn):
    return x * fn(2)


def local_function():
    def twice(n):
        return twice.__name__ == "twice" and n * 2

    return torch.ones(2), twice


def with_keys(x, *keys):
    table = {key: i for i, key in enumerate(keys)}
    return x * len(table)


def key_of_dict():
    thing = Named(3)
    return torch.ones(2), thing, {thing: 1, 2: 2}


def with_dict(x, thing, table):
    return x * table[thing] + sum(table.values()) + len(set(table))


@pytest.mark.parametrize(
    ("make", "use"),
    [(local_class, with_class), (local_function, with_function), (key_of_dict, with_dict), (lambda: (torch.ones(2), Named(1)), with_keys)],
)
def test_nothing_is_kept_alive(make, use):
    dead, compiled = dies(make, use)
    assert dead
    # The capture of dead objects is no use any more; the next call with new ones is captured anew, or served by one that asks for less.
    made = make()
    assert str(compiled(*made)) == str(use(*made))


def test_what_eager_code_behind_a_break_lets_go_of_dies():
    def f(x, items):
        thing = Thing()
        ref = weakref.ref(thing)
        cdynamo.graph_break()
        torch._dynamo.step_unsupported()
        items.append(ref() is not None)
        thing = None
        items.append(ref() is None)
        return x + 1

    items: list[bool] = []
    cdynamo.compile(f, backend="eager")(torch.ones(2), items)
    assert items == [True, True]


def test_guards_over_many_objects_are_linear():
    """Holding what the registers point to once per object that needs a dict was quadratic: minutes."""
    things = [Thing(1) for _ in range(20_000)]

    def f(x, things):
        total = 0
        for thing in things:
            total += thing.n
        return x * total

    compiled = cdynamo.compile(f, backend="eager")
    assert compiled(torch.ones(1), things).item() == 20_000
