"""Objects that are others in each call: captures serve them all, or stop being made; none is kept alive."""

import gc
import weakref

import pytest
import torch

import cdynamo
from cdynamo import _events


class Thing:
    pass


def captures(run, count: int) -> list[int]:
    """How many captures each of so many calls made."""
    made: list[int] = []
    with _events.listening(lambda kind, payload: made.__setitem__(-1, made[-1] + (kind == "capture"))):
        for _ in range(count):
            made.append(0)
            run()
    return made


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    yield
    cdynamo.reset()


def test_the_id_of_another_object_in_each_call():
    def f(x, thing):
        return x + 1, id(thing), f"{id(thing)}"

    compiled = cdynamo.compile(f, backend="eager")
    x, kept = torch.ones(2), []

    def run():
        kept.append(Thing())
        assert compiled(x, kept[-1])[1:] == (id(kept[-1]), str(id(kept[-1])))

    assert captures(run, 12) == [1, 1] + [0] * 10


def test_ids_of_two_objects():
    def f(x, a, b):
        return x + 1, id(a) == id(b), {id(a): 1, id(b): 2}, id(a) in (id(b), 3)

    compiled = cdynamo.compile(f, backend="eager")
    for _ in range(4):
        a, b = Thing(), Thing()
        for pair in ((a, b), (a, a), (b, a)):
            assert compiled(torch.ones(2), *pair)[1:] == f(torch.ones(2), *pair)[1:]


def test_an_id_as_a_key_of_a_dict_that_exists():
    def f(x, thing, memo):
        found = memo.get(id(thing), 0)
        memo[id(thing)] = found + 1
        return x + found

    compiled = cdynamo.compile(f, backend="eager")
    memo, expected = {}, {}
    kept = [Thing() for _ in range(12)]
    for thing in kept * 2:
        assert torch.equal(compiled(torch.ones(2), thing, memo), f(torch.ones(2), thing, expected))
    assert memo == expected


@pytest.mark.parametrize("breaks", (False, True))
def test_a_class_that_is_new_in_each_call_dies(breaks):
    def f(x, cls):
        if breaks:
            cdynamo.graph_break()
        return x + cls.number, issubclass(cls, Thing)

    compiled = cdynamo.compile(f, backend="eager")
    classes = []
    for number in range(20):
        cls = type("Local", (Thing,), {"number": number})
        result = compiled(torch.ones(2), cls)
        assert torch.equal(result[0], torch.ones(2) + number) and result[1]
        classes.append(weakref.ref(cls))
        del cls, result
    gc.collect()
    assert [ref() for ref in classes] == [None] * len(classes)


@pytest.mark.parametrize("breaks", (False, True))
def test_classes_whose_objects_leave_are_kept_to_the_limit(breaks):
    """The code that makes the objects holds the class."""

    def f(x, cls):
        made = cls()
        if breaks:
            cdynamo.graph_break()
        return x + made.value(), made

    compiled = cdynamo.compile(f, backend="eager")
    classes = []
    for number in range(20):

        class Local:
            def value(self, number=number):
                return number

        result = compiled(torch.ones(2), Local)
        assert torch.equal(result[0], torch.ones(2) + number) and type(result[1]) is Local
        classes.append(weakref.ref(Local))
        del Local, result
    gc.collect()
    assert sum(ref() is not None for ref in classes) <= cdynamo.config.recompile_limit


def test_captures_that_one_call_can_use_are_not_made_for_ever():
    def f(x, thing, things):
        return x + 1 if thing in things else x + 2

    def run():
        thing = Thing()
        assert torch.equal(compiled(torch.ones(2), thing, {thing: 1}), torch.full((2,), 2.0))
        hold = weakref.ref(thing)
        table = {hold: 3}
        assert torch.equal(by_reference(torch.ones(2), thing, table), torch.full((2,), 4.0))

    def g(x, thing, table):
        return x + table[weakref.ref(thing)]

    compiled, by_reference = cdynamo.compile(f, backend="eager"), cdynamo.compile(g, backend="eager")
    assert captures(run, 60)[50:] == [0] * 10
    # One that is used again and again does not count.
    models = [Thing() for _ in range(3)]
    for thing in models:
        for _ in range(3):
            assert torch.equal(compiled(torch.ones(2), thing, {thing: 1}), torch.full((2,), 2.0))
