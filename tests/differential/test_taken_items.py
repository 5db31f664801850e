"""Everything that consumes an iterable takes from it what CPython takes, and changes what it fills when CPython does."""

import array
import collections
import functools
import heapq
import io
import itertools
import math
import operator
import random
import statistics

import pytest
import torch
from differ import outcome, t

import cdynamo


def generator(log, *items):
    for item in items:
        log.append(item)
        yield item


class Own:
    def __init__(self, log, *items):
        self.log, self.left = log, list(items)

    def __iter__(self):
        return self

    def __next__(self):
        if not self.left:
            self.log.append("end")
            raise StopIteration
        self.log.append(self.left[0])
        return self.left.pop(0)


class ByNumber:
    def __init__(self, items):
        self.parts = items

    def __getitem__(self, number):
        return self.parts[number]


def of_list(log, *items):
    return iter(list(items))


def backwards(log, *items):
    return reversed(list(items)[::-1])


def mapped(log, *items):
    return map(lambda item: (log.append(item), item)[1], list(items))


def chained(log, *items):
    return itertools.chain(items[:1], items[1:])


def sliced(log, *items):
    return itertools.islice(list(items), 0, None)


def filtered(log, *items):
    return filter(lambda item: (log.append(item), True)[1], list(items))


def expression(log, *items):
    return (item for item in items)


def by_number(log, *items):
    return iter(ByNumber(items))


def by_calls(log, *items):
    left = iter(items)
    return iter(lambda: next(left), object())


def starred_set(items):
    return {*items}


def starred_list(items):
    return [*items]


def unpacked_with_star(items):
    a, b, *c = items
    return a, b, c


def unpacked(items):
    a, b = items
    return a, b


def of_three(a, b, c):
    return a


CONSUMERS = [
    ("isdisjoint", lambda i: {2, 9}.isdisjoint(i), (1, 2, 3, 4)),
    ("isdisjoint_bad", lambda i: {9}.isdisjoint(i), (1, [2], 3, 4)),
    ("difference", lambda i: {1, 2}.difference(i), (1, [2], 3)),
    ("difference_update", lambda i: {1, 2}.difference_update(i), (1, [2], 3)),
    ("intersection", lambda i: {1, 2}.intersection(i), (1, [2], 3)),
    ("intersection_update", lambda i: {1, 2}.intersection_update(i), (1, [2], 3)),
    ("symdiff", lambda i: {1, 2}.symmetric_difference(i), (1, [2], 3)),
    ("issubset", lambda i: {1, 2}.issubset(i), (1, [2], 3)),
    ("issuperset", lambda i: {1, 2}.issuperset(i), (1, 3, 4)),
    ("issuperset2", lambda i: {1, 2}.issuperset(i), (1, 2, 3, 4)),
    ("union", lambda i: {1, 2}.union(i), (1, [2], 3)),
    ("frozenset", lambda i: frozenset(i), (1, [2], 3)),
    ("star", starred_set, (1, [2], 3)),
    ("bytearray", lambda i: bytearray(i), (1, 300, 3)),
    ("bytes", lambda i: bytes(i), (1, 300, 3)),
    ("bytes2", lambda i: bytes(i), (1, "a", 3)),
    ("join", lambda i: ",".join(i), ("a", 1, "c")),
    ("any", lambda i: any(i), (0, 1, 2)),
    ("all", lambda i: all(i), (1, 0, 2)),
    ("in", lambda i: 2 in i, (1, 2, 3)),
    ("index", lambda i: operator.indexOf(i, 2), (1, 2, 3)),
    ("countOf", lambda i: operator.countOf(i, 2), (1, 2, 3)),
    ("contains", lambda i: operator.contains(i, 2), (1, 2, 3)),
    ("sorted", lambda i: sorted(i), (1, "a", 3)),
    ("max", lambda i: max(i), (1, "a", 3)),
    ("min", lambda i: min(i, key=lambda v: -v), (1, "a", 3)),
    ("sum", lambda i: sum(i), (1, "a", 3)),
    ("prod", lambda i: math.prod(i), (1, None, 3)),
    ("fsum", lambda i: math.fsum(i), (1, None, 3)),
    ("dist", lambda i: math.dist(i, [1, 2]), (1, 2)),
    ("dict", lambda i: dict(i), ((1, 2), 3, (4, 5))),
    ("dictu", lambda i: {}.update(i), ((1, 2), 3, (4, 5))),
    ("dictu2", lambda i: {}.update(i), (([], 2), (3, 4), (4, 5))),
    ("dictor", lambda i: operator.ior({}, i), ((1, 2), 3, (4, 5))),
    ("fromkeys", lambda i: dict.fromkeys(i), (1, [2], 3)),
    ("Counter", lambda i: collections.Counter(i), (1, [2], 3)),
    ("OD", lambda i: collections.OrderedDict(i), ((1, 2), 3, (4, 5))),
    ("dd", lambda i: collections.defaultdict(int, i), ((1, 2), 3, (4, 5))),
    ("deque", lambda i: collections.deque(i, 2), (1, 2, 3)),
    ("dequeext", lambda i: collections.deque([0]).extend(i), (1, 2, 3)),
    ("dequeextl", lambda i: collections.deque([0]).extendleft(i), (1, 2, 3)),
    ("zip", lambda i: list(zip(i, [1])), (1, 2, 3)),
    ("zip2", lambda i: list(zip([1], i)), (1, 2, 3)),
    ("zips", lambda i: list(zip([1], i, strict=True)), (1, 2, 3)),
    ("unpack_star", unpacked_with_star, (1, 2, 3)),
    ("unpacked", unpacked, (1, 2, 3, 4)),
    ("call", lambda i: of_three(*i), (1, 2, 3, 4)),
    ("islice", lambda i: list(itertools.islice(i, 2)), (1, 2, 3)),
    ("takewhile", lambda i: list(itertools.takewhile(lambda v: v < 2, i)), (1, 2, 3)),
    ("accumulate", lambda i: list(itertools.accumulate(i)), (1, "a", 3)),
    ("reduce", lambda i: functools.reduce(operator.add, i), (1, "a", 3)),
    ("product", lambda i: list(itertools.product(i, [1])), (1, 2)),
    ("chain", lambda i: next(itertools.chain.from_iterable(i)), ([1], 2, 3)),
    ("heap", lambda i: heapq.nsmallest(2, i), (1, "a", 3)),
    ("mean", lambda i: statistics.mean(i), (1, 2, 3)),
    ("array", lambda i: array.array("i", i), (1, "a", 3)),
    ("stack", lambda i: torch.stack(list(i)), (torch.ones(1), 1)),
    ("tensor", lambda i: torch.tensor(list(i)), (1, "a", 3)),
    ("slice", lambda i: operator.setitem([1, 2, 3], slice(0, 3, 2), i), (1, 2, 3)),
    ("slice2", lambda i: operator.setitem([1, 2, 3], slice(0, 1), i), (1, 2, 3)),
    ("iadd", lambda i: operator.iadd([1], i), (1, 2, 3)),
    ("enumerate", lambda i: next(enumerate(i)), (1, 2, 3)),
    ("map", lambda i: next(map(abs, i)), (1, 2, 3)),
    ("choices", lambda i: random.Random(1).choices(list(i)), (1, 2, 3)),
    ("format", lambda i: "%s %s" % tuple(i), (1, 2, 3)),
    ("writelines", lambda i: io.StringIO().writelines(i), ("a", 1, "b")),
    ("exg", lambda i: ExceptionGroup("a", list(i)), (ValueError(), 1)),
    ("tuplenew", lambda i: torch.Size(i), (1, "a", 2)),
    ("setin", lambda i: {1}.__ior__(set(i)), (1, [2])),
    ("set_update2", lambda i: {1}.update([5], i, [6]), (1, [2], 3)),
    ("frozen_union", lambda i: frozenset([1]).union(i), (1, [2], 3)),
    ("dictcomp", lambda i: {k: v for k, v in i}, ((1, 2), 3, (4, 5))),
    ("setcomp", lambda i: {k for k in i}, (1, [2], 3)),
    ("dictview", lambda i: {1: 2}.keys() & i, (1, [2], 3)),
    ("dictview2", lambda i: {1: 2}.keys() | i, (1, [2], 3)),
    ("dictview3", lambda i: {1: 2}.keys().isdisjoint(i), (0, 1, 2, 3)),
    ("dictview4", lambda i: {1: 2}.keys() - i, (0, [1], 2, 3)),
    ("dictview5", lambda i: {1: 2}.items().isdisjoint(i), (0, (1, 2), 2, 3)),
    ("comb", lambda i: list(itertools.combinations(i, 2)), (1, 2)),
    ("int.from_bytes", lambda i: int.from_bytes(i, "big"), (1, 300, 2)),
    ("bytesjoin", lambda i: b"".join(i), (b"a", 1, b"b")),
    ("extend_bytes", lambda i: bytearray(b"x").extend(i), (1, 300, 2)),
]
KINDS = [generator, Own, of_list, backwards, mapped, chained, sliced, filtered, expression, by_number, by_calls]


def same_as_eager(fn, make):
    """make() gives the arguments after the tensor."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    cdynamo.reset()
    want, got = fn(t(3), *make()), cdynamo.compile(fn, backend=backend)(t(3), *make())
    assert torch.equal(want[0], got[0]) and want[1:] == got[1:]
    assert graphs


@pytest.mark.parametrize("consume, items", [pytest.param(*row[1:], id=row[0]) for row in CONSUMERS])
def test_takes_what_cpython_takes(consume, items):
    for kind in KINDS:

        def inside(x, kind=kind):
            log = []
            made = kind(log, *items)
            said = repr(outcome(lambda: consume(made)))
            return x + 1, said, repr(log), repr(list(made))

        def outside(x, given):
            said = repr(outcome(lambda: consume(given)))
            return x + 1, said, repr(list(given))

        same_as_eager(inside, tuple)
        if kind not in (by_number, by_calls):
            same_as_eager(outside, lambda kind=kind: (kind([], *items),))


FILLED = [
    ("dict.update", dict, lambda c, i: c.update(i), ((1, 2), (3, 4))),
    ("od.update", collections.OrderedDict, lambda c, i: c.update(i), ((1, 2), (3, 4))),
    ("dd.update", lambda: collections.defaultdict(int), lambda c, i: c.update(i), ((1, 2), (3, 4))),
    ("ior", dict, lambda c, i: operator.ior(c, i), ((1, 2), (3, 4))),
    ("deque.extend", collections.deque, lambda c, i: c.extend(i), (1, 2)),
    ("deque.extendleft", collections.deque, lambda c, i: c.extendleft(i), (1, 2)),
    ("deque+=", collections.deque, lambda c, i: operator.iadd(c, i), (1, 2)),
    ("Counter.update", collections.Counter, lambda c, i: c.update(i), (1, 2)),
    ("Counter.subtract", collections.Counter, lambda c, i: c.subtract(i), (1, 2)),
    ("set.update", set, lambda c, i: c.update(i), (1, 2)),
    ("set.update2", set, lambda c, i: c.update([7], i), (1, 2)),
    ("set.diffu", lambda: {1, 2, 3}, lambda c, i: c.difference_update(i), (1, 2)),
    ("set.diffu2", lambda: {1, 2, 3}, lambda c, i: c.difference_update([3], i), (1, 2)),
    ("set.intu", lambda: {1, 2, 3}, lambda c, i: c.intersection_update(i), (1, 2)),
    ("set.symu", lambda: {1, 2, 3}, lambda c, i: c.symmetric_difference_update(i), (1, 2)),
    ("list.extend", list, lambda c, i: c.extend(i), (1, 2)),
    ("list.init", list, lambda c, i: c.__init__(i), (1, 2)),
    ("set.init", lambda: {5}, lambda c, i: c.__init__(i), (1, 2)),
    ("dict.init", lambda: {5: 6}, lambda c, i: c.__init__(i), ((1, 2), (3, 4))),
    ("deque.init", lambda: collections.deque([5]), lambda c, i: c.__init__(i), (1, 2)),
    ("slice", lambda: [5, 6], lambda c, i: operator.setitem(c, slice(0, 1), i), (1, 2)),
    ("slice2", lambda: [5, 6], lambda c, i: operator.setitem(c, slice(0, 2, 1), i), (1, 2)),
    ("bytearray", lambda: bytearray(b"a"), lambda c, i: c.extend(i), (1, 2)),
    ("array", lambda: array.array("i"), lambda c, i: c.extend(i), (1, 2)),
    ("UserList", collections.UserList, lambda c, i: c.extend(i), (1, 2)),
    ("UserDict", collections.UserDict, lambda c, i: c.update(i), ((1, 2), (3, 4))),
    ("fromkeys", dict, lambda c, i: c.fromkeys(i), (1, 2)),
    ("ChainMap", collections.ChainMap, lambda c, i: c.update(i), ((1, 2), (3, 4))),
    ("PL", torch.nn.ParameterList, lambda c, i: c.extend(i), (1,)),
    ("ML", torch.nn.ModuleList, lambda c, i: c.extend(i), (1,)),
]


@pytest.mark.parametrize("make, fill, items", [pytest.param(*row[1:], id=row[0]) for row in FILLED])
def test_fills_item_by_item(make, fill, items):
    def lengths(into, log):
        for item in items:
            log.append(len(into))
            yield item
        log.append(len(into))

    class Lengths:
        def __init__(self, into, log):
            self.into, self.log, self.at = into, log, 0

        def __iter__(self):
            return self

        def __next__(self):
            self.log.append(len(self.into))
            if self.at == len(items):
                raise StopIteration
            self.at += 1
            return items[self.at - 1]

    def mapped_lengths(into, log):
        return map(lambda item: (log.append(len(into)), item)[1], items)

    for kind in (lengths, Lengths, mapped_lengths):

        def fn(x, kind=kind):
            log, into = [], make()
            said = repr(outcome(lambda: fill(into, kind(into, log))))
            return x + 1, said, repr(into), repr(log)

        same_as_eager(fn, tuple)
