"""Iterators and generators that exist before the call: items are read as eager would, and the object is left where eager leaves it.

Iterators among the arguments are compared by using them up."""

import collections
import itertools

from differ import Cases, Setup, t

cases = Cases()
case = cases.case
scenario = cases.scenario

KINDS = {
    "list": lambda: iter([t(3), t(3, seed=1), t(3, seed=2), t(3, seed=3)]),
    "list_half": lambda: advanced(iter([1, t(3), 2, t(3, seed=1)]), 1),
    "tuple": lambda: iter((1, t(3), 3, 4)),
    "range": lambda: iter(range(2, 14, 3)),
    "range_down": lambda: iter(range(9, 0, -2)),
    "dict_keys": lambda: iter({1: 2, 3: 4, 5: 6, 7: 8}),
    "dict_values": lambda: iter({"a": t(3), "b": 2, "c": 3, "d": 4}.values()),
    "dict_values_half": lambda: advanced(iter({"a": t(3), "b": 2, "c": 3, "d": 4}.values()), 2),
    "set": lambda: iter({3}),
    "bytes": lambda: iter(b"abcd"),
    "reversed_list": lambda: reversed([1, 2, t(3), 4]),
    "reversed_tuple": lambda: reversed((1, 2, t(3), 4)),
    "map": lambda: map(lambda v: v + 1, [1, t(3), 3, 4]),
    "map_of_two": lambda: map(lambda a, b: a * b, [1, t(3), 3], iter((4, 5, 6))),
    "filter": lambda: filter(lambda v: v is not None, [None, 1, None, t(3), 3]),
    "filter_none": lambda: filter(None, [0, 1, 0, 2, 3]),
    "deque": lambda: iter(collections.deque([1, t(3), 3, 4])),
    "deque_half": lambda: advanced(iter(collections.deque(range(150))), 60),
    "deque_reversed": lambda: advanced(reversed(collections.deque(range(150))), 70),
    "nested_map": lambda: map(lambda v: v * 2, map(lambda v: v + 1, iter([1, 2, 3]))),
}
PAIRS = {
    "zip": lambda: zip([1, 2, 3, 4], iter([t(3), t(3, seed=1), t(3, seed=2)])),
    "zip_strict": lambda: zip([1, 2], (t(3), t(3)), strict=True),
    "enumerate": lambda: enumerate([t(3), t(3, seed=1), t(3, seed=2)], 5),
    "enumerate_half": lambda: advanced(enumerate(iter((4, 5, 6, 7))), 2),
    "dict_items": lambda: iter({2: t(3), 3: t(3, seed=1), 4: 5}.items()),
    "enumerate_of_zip": lambda: ((a, b[0]) for a, b in enumerate(zip([1, 2], [3, 4]))),
    "generator": lambda x=t(3): ((i, x * i) for i in range(3)),
}


def advanced(it, n):
    for _ in range(n):
        next(it)
    return it


def list_end(it):
    list(it)
    return it


def add_kind(name, make, pairs):
    def all_of_it(x, it):
        for v in it:
            x = x + (v[0] * v[1] if pairs else v)
        return x, next(it, None)

    def two_of_it(x, it):
        a = next(it)
        b = next(it, None)
        return x + 1, a, b, it

    for fn in (all_of_it, two_of_it):
        cases.cases.append(type(cases.cases[0])(f"{fn.__name__}_{name}", lambda fn=fn: Setup(fn, lambda: (t(3), make()))))


@case(lambda: (t(3), iter([1, 2, 3]), iter([1, 2, 3])))
def first_of_two(x, a, b):
    return x + next(a), next(b), next(a)


for name, make in KINDS.items():
    add_kind(name, make, False)
for name, make in PAIRS.items():
    add_kind(name, make, True)


@case(lambda: (t(3), zip([1, 2], itertools.count(5)), itertools.count(2)))
def endless_ones(x, pairs, numbers):
    return [x * a * b * next(numbers) for a, b in pairs], next(numbers)


@scenario(skip="UnsupportedNext")
def deque_that_was_changed_meanwhile():
    def fn(x, it, items):
        items.append(4)
        try:
            return x + next(it)
        except RuntimeError as error:
            return x * 2, str(error)

    def args():
        items = collections.deque([1, 2, 3])
        return t(3), iter(items), items

    return Setup(fn, args)


@case(lambda: (t(3), iter("abc")))
def text(x, it):
    return x + 1, "".join(it), list(it)


@case(lambda: (t(3), iter([1, 2, 3])))
def left_alone(x, it):
    return x + 1, it


@case(lambda: (t(3), list_end(iter([1, 2]))))
def exhausted(x, it):
    return x + 1, next(it, "end"), list(it)


@case(lambda: (t(3), iter([1, 2, 3, 4])))
def through_a_new_zip(x, it):
    pairs = zip(it, it)
    a, b = next(pairs)
    return x * a + b, pairs


@case(lambda: (t(3), iter([1, 2, 3, 4])))
def unpacked(x, it):
    a, b, *rest = it
    return x * a + b, rest


@scenario(after_change=(1, 0, 1))
def the_same_one_twice():
    args = [lambda: (t(3), iter([1, 2, 3]), iter([4, 5, 6]))]

    def fn(x, a, b):
        return x * next(a), next(b), next(a)

    def same():
        it = iter([1, 2, 3])
        return t(3), it, it

    def different():
        return t(3), iter([1, 2, 3]), iter([4, 5, 6])

    return Setup(
        fn,
        lambda: args[0](),
        changes=[lambda: args.__setitem__(0, same), lambda: None, lambda: args.__setitem__(0, lambda: (t(3), iter(()), iter(())))],
    )


@scenario(after_change=(None,))
def list_that_is_written_to():
    """The list is another one than that of the iterator, and later the same."""
    other = [False]

    def args():
        a, b = [1, 2], [3]
        return t(3), (iter(a) if other[0] else iter(b)), a

    def fn(x, it, items):
        items.append(7)
        next(it)
        return x + 1, list(it), items

    return Setup(fn, args, changes=[lambda: other.__setitem__(0, True)])


@scenario(skip="*", graphs=1, captures=(2, 0))
def list_changed_under_it():
    def args():
        items = [1, 2]
        return t(3), iter(items), items

    def fn(x, it, items):
        next(it)
        items.append(x + 1)
        return list(it), items

    return Setup(fn, args)


@scenario(after_change=(None,))
def ended_and_growing():
    """An iterator that met its end never goes on; one at the end of its list does."""
    met = [True]

    def args():
        items = [1]
        it = iter(items)
        for _ in range(2 if met[0] else 1):
            next(it, None)
        return t(3), it, items

    def fn(x, it, items):
        items.append(7)
        return x + 1, next(it, "end")

    return Setup(fn, args, changes=[lambda: met.__setitem__(0, False)])


@scenario(after_change=(None, None, None))
def length_changes():
    """After the second length, the rest of the loop is no longer captured as a whole."""
    count = [3]

    def fn(x, it):
        for v in it:
            x = x + v
        return x

    return Setup(fn, lambda: (t(3), iter(list(range(count[0])))), changes=[lambda n=n: count.__setitem__(0, n) for n in (4, 5, 3)])


@scenario(captures=(1, 0))
def of_a_closure():
    it = iter([1.0, 2.0, 2.0, 2.0])

    def fn(x):
        a = next(it)
        return x + 1, a

    return Setup(fn, lambda: (t(3),), watch=lambda: it.__length_hint__())


@case(lambda: (t(3), iter([1, 2])), graphs=0)
def raises_after(x, it):
    next(it)
    raise KeyError(next(it))


@case(lambda: (t(3), iter([1, 2])))
def raises_and_catches(x, it):
    try:
        for v in it:
            x = x + v
        raise KeyError
    except KeyError:
        return x, next(it, None)


# ---- generators ---------------------------------------------------------------------------------------------------------


def running(x, n):
    for i in range(n):
        x = x * 2
        yield x + i


def half(g, n=1):
    return advanced(g, n)


@case(lambda: (t(3), running(t(3), 3)))
def generator_not_started(x, g):
    return x + next(g), g


@case(lambda: (t(3), half(running(t(3), 4), 2)))
def generator_half_way(x, g):
    for v in g:
        x = x + v
    return x, next(g, None)


@case(lambda: (t(3), half(running(t(3), 4))))
def generator_handed_back(x, g):
    a = next(g)
    return a * 2, g


@case(lambda: (t(3), half(echo(t(3)))))
def generator_sent(x, g):
    return g.send(x) + g.send(x * 2), g


def echo(x):
    got = yield x
    while True:
        got = yield got + 1


def handling(x):
    try:
        raise KeyError("a")
    except KeyError as error:
        yield x
        yield error.args
        try:
            raise ValueError from error
        except ValueError as other:
            yield other.__context__ is error


@case(lambda: (t(3), half(handling(t(3)))))
def generator_in_a_handler(x, g):
    return x + 1, next(g), next(g), list(g)


def cleaning(log):
    try:
        yield 1
        yield 2
    finally:
        log.append("cleaned")


@case(lambda: (t(3), half(cleaning(LOG))), captures=(1, 0))
def generator_closed(x, g):
    g.close()
    return x + 1, next(g, "end")


LOG = []


@case(lambda: (t(3), half(catching())))
def generator_thrown_into(x, g):
    return x + g.throw(KeyError(3)), next(g, "end")


def catching():
    try:
        yield 1
    except KeyError as error:
        yield error.args[0]


@case(lambda: (t(3), half(delegating(t(3)), 2)))
def generator_that_delegates(x, g):
    for v in g:
        x = x + v
    return x


def delegating(x):
    yield x
    r = yield from running(x, 2)
    yield x if r is None else r


@case(lambda: (t(3), half(v + 1 for v in [t(3), t(3, seed=1)])))
def generator_expression(x, g):
    return x + next(g), list(g)


@scenario()
def generator_with_cells():
    def make(x):
        n = 1

        def more():
            return x * n

        while True:
            n += 1
            yield more()

    def fn(x, g):
        return x + next(g), next(g)

    return Setup(fn, lambda: (t(3), half(make(t(3)))))


@case(lambda: (t(3), half(among_arguments(t(3)))), skip="ForeignGenerator", captures=(2, 0), graphs=1)
def generator_among_arguments(x, g):
    return next(g), x + 1


def among_arguments(x):
    yield max(x.sum().item(), (yield 2))


test_existing_iterators = cases.as_test(__name__)
