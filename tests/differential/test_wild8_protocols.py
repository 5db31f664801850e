"""Which methods of the program's objects are called, how often and in which order; in-place operators; iterators by their methods."""

import collections
import copy
import enum
import functools
import itertools
import operator

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class Sequence:
    def __init__(self, log, n=3):
        self.log, self.n = log, n

    def __len__(self):
        self.log.append("len")
        return self.n

    def __getitem__(self, i):
        self.log.append(i)
        if i >= self.n or (i == 1 and self.n == 4):
            raise IndexError
        if i == 1 and self.n == 5:
            raise KeyError("k")
        return i * 2


class Items:
    def __init__(self, log, n=2):
        self.log, self.n, self.i = log, n, 0

    def __iter__(self):
        self.log.append("iter")
        return self

    def __next__(self):
        self.log.append("next")
        if self.i >= self.n:
            raise StopIteration
        self.i += 1
        return self.i

    def __length_hint__(self):
        self.log.append("hint")
        return 2


class Index:
    def __init__(self, log, value):
        self.log, self.value = log, value

    def __index__(self):
        self.log.append("index")
        return self.value


@case(lambda: (t(3), []))
def sequences_are_asked_for_their_length(x, log):
    made = [list(Sequence(log)), tuple(Sequence(log)), sorted(Sequence(log)), [*Sequence(log)], sum(Sequence(log)), max(Sequence(log))]
    log.append("--")
    return x + 1, made, (lambda *a: a)(*Sequence(log)), set(Sequence(log)), log


class Unknown(Sequence):
    def __len__(self):
        raise NotImplementedError("no length")


@case(lambda: (t(3), []))
def length_that_fails(x, log):
    return x + 1, outcome(lambda: list(Unknown(log))), outcome(lambda: tuple(Unknown(log))), outcome(lambda: sum(Unknown(log))), log


@case(lambda: (t(3), []))
def iterators_are_asked_once(x, log):
    numbers = [1]
    numbers.extend(Items(log))
    numbers += Items(log)
    made = [list(Items(log)), tuple(Items(log)), [*Items(log)], sorted(Items(log)), sum(Items(log)), functools.reduce(operator.add, Items(log))]
    return x + sum(Items(log), 1), numbers, made, outcome(lambda: sum(Items(log), "a")), log


@case(lambda: (t(3),))
def list_grows_while_it_is_added_to(x):
    numbers = [1]

    def lengths():
        for _ in range(3):
            yield len(numbers)

    class Lengths:
        def __iter__(self):
            return lengths()

    same = numbers
    numbers += lengths()
    numbers += Lengths()
    return x + len(numbers), numbers, same is numbers


@case(lambda: (t(3), []))
def reversed_reads_from_behind(x, log):
    it = reversed(Sequence(log))
    first = next(it)
    log.append("mid")
    rest, after = list(it), outcome(lambda: next(it))
    others = list(reversed(Sequence(log, 4))), outcome(lambda: list(reversed(Sequence(log, 5)))), 4 in reversed(Sequence(log))
    left = reversed(Sequence([]))
    next(left)
    return x + first, rest, after, others, type(it), left, reversed(Sequence([])), log


class Color(enum.Enum):
    RED = 1
    GREEN = 2


@case(lambda: (t(3),))
def reversed_of_a_class(x):
    it = reversed(Color)
    return x + 1, type(it), next(it), it.__next__(), outcome(lambda: it.__next__())


@case(lambda: (t(3),))
def iterators_by_their_methods(x):
    its = [
        iter("a"),
        iter(lambda: 1, 2),
        reversed((1,)),
        reversed({1: 2}),
        itertools.chain([1]),
        itertools.count(3),
        itertools.repeat(1),
        zip([1], "b"),
    ]
    return x + 1, [i.__next__() for i in its], [i.__iter__() is i for i in its], [outcome(i.__next__) for i in its[2:5]]


@case(lambda: (t(3), []))
def bytes_of_an_index(x, log):
    return x + 1, bytes(Index(log, 2)), log


@case(lambda: (t(3),))
def generator_parts(x):
    def numbers():
        yield made.gi_running
        yield 2

    made = numbers()
    before = made.gi_running, made.gi_suspended, made.gi_code is numbers.__code__
    inside = next(made)
    after = made.gi_suspended, list(made), made.gi_frame, made.gi_suspended
    return x + 1, before, inside, after


@case(lambda: (t(3),))
def texts_of_getters(x):
    made = (
        operator.itemgetter(1),
        operator.itemgetter(1, "a"),
        operator.attrgetter("a.b"),
        operator.attrgetter("a", "b"),
        operator.methodcaller("m", 1, k=2),
    )
    return x + 1, [repr(m) for m in made], f"{made[0]}"


@case(lambda: (t(3),))
def concatenating(x):
    pairs = [
        ([1], [2]),
        ((1,), (2,)),
        ("a", "b"),
        (1, 2),
        ({}, {}),
        ([1], 2),
        (1, [2]),
        (collections.deque([1]), collections.deque([2])),
        (x.shape, (1,)),
    ]
    both = operator.concat, operator.iconcat
    return (
        x + 1,
        [outcome(lambda p=p, f=f: f(*p)) for p in pairs for f in both],
        outcome(lambda: operator.concat(x, x)),
        outcome(lambda: collections.deque([1]) + [2]),
    )


@case(lambda: (t(3),))
def views_and_keywords_are_refused(x):
    d = {"a": 1}
    orders = [outcome(f) for f in (lambda: d.keys() < 1, lambda: d.items() >= "a", lambda: 1 > d.keys())]
    return x + 1, orders, d.keys() == 1, d.items() != None, outcome(lambda: dict(**{1: 2})), d.keys().mapping["a"], type(d.items().mapping)  # noqa: E711


@case(lambda: (t(3),))
def tee_is_copied(x):
    a, b = itertools.tee(iter([x, x * 2, x * 3]))
    next(a)
    c = copy.copy(a)
    return [v + 1 for v in c], len(list(b)), next(a)


# ---- tensors -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(2, 2), t(2, 2, dtype=torch.int64), t(2, 2, seed=1)))
def in_place_operators_keep_the_tensor(x, n, y):
    a, b, c, d = x, n, n, y.clone()
    a **= 2
    b <<= 1
    c >>= y.to(torch.int64).clamp(0, 1)
    e = d
    e **= y
    e //= 2
    e %= 3
    f = n.clone()
    g = f.__ilshift__(1), f.__ior__(1), f.__iand__(7), f.__ixor__(2), f.__ifloordiv__(2), f.__imod__(3), f.__ipow__(2)
    h = d
    h @= y
    return a is x, b is n, c is n, e is d, [v is f for v in g], h is d, a, b, c, d, f, h, x + 1


@case(lambda: (t(3, 4),))
def sizes_of_what_is_no_number(x):
    bad = [outcome(f) for f in (lambda: torch.Size(["a"]), lambda: torch.Size([1.5]), lambda: torch.Size(3))]
    return x.reshape(torch.Size([4, 3])), bad, torch.Size([]), torch.Size(range(2))


@case(lambda: (t(4, 4),))
def deprecated_index_warns_where_it_runs(x):
    return x[[[0], [1]]] + 1


@scenario(after_change=(1, 1))
def backends_are_switched():
    def f(x):
        return x + 1, torch.backends.cudnn.enabled, torch.backends.mkldnn.enabled

    def switch(backend, on):
        backend.enabled = on

    def restore():
        torch.backends.cudnn.enabled = torch.backends.mkldnn.enabled = True

    changes = [lambda: switch(torch.backends.cudnn, False), lambda: switch(torch.backends.mkldnn, False)]
    return Setup(f, lambda: (t(3),), changes=changes, cleanup=restore)


test_wild8_protocols = cases.as_test(__name__)
