"""Every value that the trace made becomes real: returned, kept in a list that was passed, in an attribute; then used outside.

Iterators are compared by using them up (differ.Comparison.iterators)."""

import collections
import dataclasses
import enum
import functools
import gc
import itertools
import operator
import types
import weakref

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case = cases.case
scenario = cases.scenario


# ---- iterators of builtins ---------------------------------------------------------------------------------------------


@case(lambda: (t(3), [1, 2, 3, 4]))
def list_iterators(x, given):
    own = [x, x + 1, 3]
    a, b, c = iter(own), iter(own), iter(given)
    next(b), next(c), next(c)
    done = iter(own)
    list(done)
    own.append(5)
    return own, a, b, c, done


@case(lambda: (t(3), [1, 2, 3, 4]))
def list_iterator_over_a_list_that_grows(x, given):
    it = iter(given)
    for _ in range(4):
        next(it)
    given.append(x + 1)
    given.append(6)
    return it, given


@case(lambda: (t(3), (1, 2, 3)))
def tuple_iterators(x, given):
    a, b = iter((x, 2, x + 3)), iter(given)
    next(a), next(b)
    done = iter(given)
    list(done)
    return a, b, done


@case(lambda: (t(3), "text"))
def text_iterators(x, given):
    a, b, c = iter("abc"), iter(given), iter(b"xyz")
    next(a), next(b), next(c)
    done = iter("q")
    list(done)
    return a, b, c, done, x + 1


@case(lambda: (t(3),))
def range_iterators(x):
    a, b, c = iter(range(5)), iter(range(10, 0, -3)), reversed(range(7))
    next(a), next(b), next(c)
    done = iter(range(2))
    list(done)
    return a, b, c, done, x + 1


@case(lambda: (t(3), [1, 2, 3], (4, 5, 6), {"a": 1, "b": 2, "c": 3}))
def reversed_iterators(x, given, pair, table):
    own = [x, 1, 2]
    its = [
        reversed(own),
        reversed(given),
        reversed(pair),
        reversed("abc"),
        reversed(table),
        reversed(table.items()),
        reversed(collections.deque(own)),
    ]
    for it in its:
        next(it)
    done = reversed(own)
    list(done)
    own.append(9)
    return its, done, own, x + 1


@case(lambda: (t(3), {"a": 1, "b": 2, "c": 3}))
def dict_iterators(x, given):
    own = {"k": x, "l": x + 1, "m": 3}
    its = [iter(own), iter(own.values()), iter(own.items()), iter(given), iter(given.values()), iter(given.items())]
    fresh = [iter(own), iter(given.items())]
    for it in its:
        next(it)
    done = iter(own.items())
    list(done)
    return its, fresh, done, own


@case(lambda: (t(3), {"a": 1, "b": 2, "c": 3}))
def dict_iterator_after_a_write(x, given):
    given["d"] = x + 1
    del given["a"]
    it = iter(given.items())
    next(it)
    given["b"] = 7
    return it, given


@case(lambda: (t(3),))
def ordered_dict_iterators(x):
    own = collections.OrderedDict(a=x, b=2, c=3)
    own.move_to_end("a")
    its = [iter(own), iter(own.values()), iter(own.items()), reversed(own)]
    for it in its:
        next(it)
    return its, own, x + 1


@case(lambda: (t(3), {3, 1, 2}))
def set_iterators(x, given):
    own = {10, 20, 30}
    a, b = iter(own), iter(given)
    next(a), next(b)
    done = iter(own)
    list(done)
    return a, b, done, x + 1


@case(lambda: (t(3), collections.deque([1, 2, 3])))
def deque_iterators(x, given):
    own = collections.deque([x, 2, 3], maxlen=5)
    a, b = iter(own), iter(given)
    next(a), next(b)
    done = iter(own)
    list(done)
    return a, b, done, own, x + 1


@case(lambda: (t(4, 2),))
def tensor_iterator(x):
    it = iter(x)
    next(it)
    return it, x + 1


@case(lambda: (t(3), [1, 2, 3, 4]))
def zips(x, given):
    a, b = zip(given, [x, x + 1, x + 2]), zip(given, (1, 2, 3, 4), strict=True)
    bad = zip(given, (1, 2), strict=True)
    next(a), next(b), next(bad)
    short = zip(iter(given), [1])
    list(short)
    return a, b, bad, short, zip(), x * 2


@case(lambda: (t(3), [1, 2, 3, 4]))
def maps_and_filters(x, given):
    m, f, e, n = map(lambda a, b: a + b, given, given), filter(lambda a: a % 2, given), enumerate(given, 5), filter(None, [0, 1, 0, 2])
    ff = itertools.filterfalse(lambda a: a % 2, given)
    for it in (m, f, e, n, ff):
        next(it)
    return m, f, e, n, ff, x + 1


@case(lambda: (t(3), [1, 2, 3, 4, 5]))
def shared_inner_iterator(x, given):
    it = iter(given)
    pairs = zip(it, it)
    numbered = enumerate(it)
    next(pairs)
    return it, pairs, numbered, x + 1


@case(lambda: (t(3),))
def callable_iterators(x):
    calls = []

    def step():
        calls.append(1)
        return len(calls)

    a = iter(step, 4)
    next(a)
    done = iter(step, 2)
    list(done)
    return a, done, calls, x + 1


class Squares:
    def __init__(self, n):
        self.n = n

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError
        return i * i


@case(lambda: (t(3), Squares(4)))
def item_protocol_iterators(x, given):
    a, b = iter(given), iter(Squares(3))
    next(a), next(a), next(b)
    done = iter(Squares(1))
    list(done)
    return a, b, done, x + 1


class Countdown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


@case(lambda: (t(3), Countdown(5)))
def user_iterators_inside(x, given):
    own = Countdown(4)
    a, b = zip(own, given), enumerate(own)
    next(a), next(b)
    return own, a, b, x + 1


class MyList(list):
    pass


class MyDict(dict):
    pass


@case(lambda: (t(3),))
def subclass_iterators(x):
    items, d = MyList([x, 1, 2]), MyDict(a=1, b=2)
    a, b, c = iter(items), iter(d.items()), d.values()
    next(a), next(b)
    return items, d, a, b, list(c), x + 1


# ---- itertools ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), [1, 2, 3]))
def chains(x, given):
    inner = iter(given)
    a, b, c, d = itertools.chain(given, [x], "ab"), itertools.chain.from_iterable([[1], given]), itertools.chain(), itertools.chain(inner, [7])
    for it in (a, b, d):
        next(it)
    done = itertools.chain([1])
    list(done)
    lazy = itertools.chain.from_iterable(itertools.repeat([1, 2]))
    next(lazy), next(lazy), next(lazy)
    return a, b, c, d, inner, done, lazy, x + 1


@case(lambda: (t(3), list(range(12))))
def islices(x, given):
    a, b, c = itertools.islice(given, 5), itertools.islice(given, 2, 11, 3), itertools.islice(iter(given), 1, None)
    d = itertools.islice(given, 3, 9)
    for it in (a, b, c):
        next(it)
    done = itertools.islice(given, 1)
    list(done)
    return a, b, c, d, done, x + 1


@case(lambda: (t(3),))
def repeats_and_counts(x):
    a, b, c, d, e = itertools.repeat(x), itertools.repeat(x, 3), itertools.count(2, 3), itertools.count(), itertools.count(0.5, 0.25)
    for it in (a, b, c, d, e):
        next(it)
    done = itertools.repeat(1, 1)
    list(done)
    return a, b, c, d, e, done, x + 1


@case(lambda: (t(3), [1, 2, 3]))
def cycles(x, given):
    fresh, first, second, wrapped, empty = (itertools.cycle(given) for _ in range(5))
    next(first), next(first)
    for _ in range(4):
        next(second)
    for _ in range(6):
        next(wrapped)
    empty = itertools.cycle([])
    list(empty)
    return fresh, first, second, wrapped, empty, x + 1


@case(lambda: (t(3), [1, 2, 3, 4]))
def accumulates(x, given):
    a, b, c = itertools.accumulate(given), itertools.accumulate(given, lambda p, q: p * q), itertools.accumulate(given, initial=10)
    d, e = itertools.accumulate([x, x, x]), itertools.accumulate(given, initial=7)
    n = itertools.accumulate([None, 1, 2], lambda p, q: q)
    for it in (a, b, c, d, n):
        next(it)
    next(a)
    return a, b, c, d, e, n, x + 1


@case(lambda: (t(3), [1, 2, 3, 4]))
def while_iterators(x, given):
    a, b = itertools.takewhile(lambda v: v < 3, given), itertools.dropwhile(lambda v: v < 2, given)
    c, d = itertools.takewhile(lambda v: v < 3, given), itertools.dropwhile(lambda v: v < 2, given)
    next(a), next(b)
    done = itertools.takewhile(lambda v: v < 2, [1, 2, 1, 1])
    list(done)
    return a, b, c, d, done, x + 1


@case(lambda: (t(3), [1, 2, 3, 4]))
def small_itertools(x, given):
    a, b, c, e = (
        itertools.starmap(pow, [(2, 3), (3, 2)]),
        itertools.compress("abcd", [1, 0, 1, 1]),
        itertools.pairwise(given),
        itertools.pairwise([1]),
    )
    for it in (a, b, c):
        next(it)
    list(e)
    return a, b, c, e, itertools.pairwise(given), x + 1


@case(lambda: (t(3), [1, 2, 3]))
def combinatorics(x, given):
    its = [
        itertools.product(given, "ab"),
        itertools.product(given, repeat=2),
        itertools.permutations(given),
        itertools.permutations(given, 2),
        itertools.combinations(given, 2),
        itertools.combinations_with_replacement(given, 2),
        itertools.product([x], given),
    ]
    for it in its:
        next(it)
    done = itertools.combinations([1, 2], 2)
    list(done)
    return its, itertools.permutations([x, 1]), done, x + 1


@case(lambda: (t(3), [1, 2, 3]))
def zip_longests(x, given):
    inner = iter(given)
    a, b = itertools.zip_longest(given, [x]), itertools.zip_longest(inner, "abcde", fillvalue=x)
    next(a), next(b), next(a)
    done = itertools.zip_longest([1])
    list(done)
    return a, b, inner, done, x + 1


@case(lambda: (t(3), "aabbbc"))
def groupbys(x, given):
    fresh, begun, inside = itertools.groupby(given), itertools.groupby(given, key=lambda c: c), itertools.groupby(given)
    key, group = next(begun)
    k2, g2 = next(inside)
    first = next(g2)
    return fresh, key, group, first, g2, x + 1


@case(lambda: (t(3), "aabbbc"))
def groupby_goes_on(x, given):
    groups = itertools.groupby(given)
    old = next(groups)[1]
    _, now = next(groups)
    next(now)
    return groups, old, x + 1


@case(lambda: (t(3), [1, 2, 3, 4]))
def tees(x, given):
    a, b = itertools.tee(given)
    next(a), next(a), next(b)
    return b, a, x + 1


@case(lambda: (t(3), [3, 1, 2]))
def stand_ins_for_callables(x, given):
    key = functools.cmp_to_key(lambda p, q: q - p)
    return operator.itemgetter(1), operator.itemgetter(0, 2), operator.attrgetter("real"), key, key(4), operator.methodcaller("count", 1), x + 1


@scenario()
def stand_ins_work_outside():
    def f(x):
        return (
            x + 1,
            operator.itemgetter(1),
            operator.itemgetter(0, 2),
            operator.attrgetter("real"),
            functools.cmp_to_key(lambda p, q: q - p),
            operator.methodcaller("index", 3),
        )

    def after(r):
        values = [5, 3, 9]
        return r[1](values), r[2](values), r[3](4j), sorted(values, key=r[4]), r[5](values), [repr(type(v)) for v in r[1:]]

    return Setup(f, lambda: (t(3),), after=after)


# ---- generators --------------------------------------------------------------------------------------------------------


def numbers(n, *rest, start=0, **named):
    for i in range(n):
        yield start + i
    yield rest
    yield named


@case(lambda: (t(3),))
def generators_not_started(x):
    return numbers(2), numbers(1, x, 3, start=5, other=x), (v * x for v in (1, 2)), x + 1


@case(lambda: (t(3),))
def generators_half_way(x):
    a, b = numbers(3, 1, start=4), (v * x for v in [1, 2, 3])
    next(a), next(b), next(a)
    return a, b, x + 1


@case(lambda: (t(3),))
def generators_finished(x):
    a, b, c = numbers(1), (v for v in ()), numbers(3)
    list(a), list(b)
    next(c)
    c.close()
    return a, b, c, x + 1


@case(lambda: (t(3),))
def generator_shares_cells(x):
    total = 0

    def count():
        nonlocal total
        while total < 5:
            total += 1
            got = yield total
            if got:
                total += got

    def look():
        return total

    g = count()
    next(g)
    return g, look, x + 1


@scenario()
def generator_sends_and_throws_outside():
    log = []

    def chatty(x):
        with Noting(log):
            try:
                for i in range(3):
                    got = yield i, x
                    log.append(("got", got))
            except ValueError as error:
                log.append(("caught", str(error)))
                yield "handled"
            finally:
                log.append("finally")

    def f(x):
        g = chatty(x + 1)
        next(g)
        return g

    def after(g):
        out = [g.send("hello")]
        out.append(g.throw(ValueError("thrown")))
        out.append(next(g, "end"))
        return out, list(log)

    return Setup(f, lambda: (t(3),), after=after, watch=lambda: log)


class Noting:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, error, tb):
        self.log.append(("out", kind and kind.__name__, tb is None))
        return False


@scenario()
def generator_closed_outside():
    log = []

    def f(x):
        def g():
            with Noting(log):
                try:
                    yield x + 1
                finally:
                    log.append("finally")

        made = g()
        next(made)
        return made

    return Setup(f, lambda: (t(3),), after=lambda g: g.close(), watch=lambda: log)


@scenario()
def generator_inside_an_except_block():
    def f(x):
        def g():
            try:
                raise KeyError("k")
            except KeyError as error:
                yield x + 1
                try:
                    raise
                except KeyError as again:
                    yield again is error, repr(again)
            yield "after"
            try:
                raise
            except RuntimeError as none:
                yield str(none)

        made = g()
        next(made)
        return made

    return Setup(f, lambda: (t(3),))


@scenario()
def generator_inside_two_except_blocks():
    def f(x):
        def g():
            try:
                raise KeyError("outer")
            except KeyError:
                try:
                    raise ValueError("inner")
                except ValueError as e:
                    yield x + 1
                    yield repr(e.__context__)
                try:
                    raise
                except KeyError as back:
                    yield repr(back)

        made = g()
        next(made)
        return made

    return Setup(f, lambda: (t(3),))


@case(lambda: (t(3),))
def generator_through_yield_from(x):
    def inner():
        got = yield 1
        yield got
        return "returned"

    def outer():
        result = yield from inner()
        yield result
        yield from [x, x + 1]

    a, b = outer(), outer()
    next(a), next(b), next(b), next(b), next(b)
    return a, b, x * 2


@scenario()
def generator_through_yield_from_sends():
    def f(x):
        def inner():
            got = yield x + 1
            return got

        def outer():
            got = yield from inner()
            yield "result", got

        g = outer()
        next(g)
        return g

    return Setup(f, lambda: (t(3),), after=lambda g: g.send("sent"))


@case(lambda: (t(3),))
def generator_in_generator(x):
    def squares(source):
        for v in source:
            yield v * v

    source = numbers(5)
    g = squares(source)
    next(g), next(g)
    return g, source, x + 1


@case(lambda: (t(3),))
def generator_with_deleted_locals(x):
    def g(a, b):
        del a
        for i in range(3):
            yield i
            b = x
        del b
        yield sorted(k for k in locals() if k not in ("x",))

    made = g(1, 2)
    next(made), next(made)
    return made, x + 1


class Base:
    def items(self):
        yield "base"


class Derived(Base):
    def items(self):
        yield "derived"
        yield from super().items()

    def kept(self):
        see = lambda: self
        yield see() is self
        yield from super().items()


@case(lambda: (t(3), Derived()))
def generator_methods(x, given):
    a, b = given.items(), given.kept()
    next(a), next(b)
    return a, b, x + 1


@case(lambda: (t(3), []))
def generator_in_a_cycle(x, given):
    def g(out):
        yield len(out)
        yield len(out)
        out.append(3)
        yield out[-1]

    made = g(given)
    next(made)
    given.append(made)
    return x + 1, len(given)


@scenario(captures=(1,))
def generator_comprehension_in_class_attribute():
    class Box:
        pass

    box = Box()

    def f(x):
        box.gen = (v + x for v in range(4) if v % 2)
        next(box.gen)
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: [box.gen])


@case(lambda: (t(3),))
def generator_inside_finally(x):
    def g():
        try:
            yield 1
        finally:
            yield x + 1
            yield 3

    made = g()
    next(made), next(made)
    return made, x * 2


@scenario()
def generator_inside_finally_with_error():
    def f(x):
        def g():
            try:
                raise ValueError("kept")
            finally:
                yield x + 1
                yield 3

        made = g()
        next(made)
        return made

    return Setup(f, lambda: (t(3),))


def test_generators_leave_nothing_behind():
    class Marker:
        pass

    def f(x, m):
        def g(held):
            for i in iter([held, held, held]):
                yield i, x + 1

        made = g(m)
        next(made)
        return made

    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        compiled = cdynamo.compile(f, backend="eager")
        for _ in range(3):
            m = Marker()
            ref = weakref.ref(m)
            made = compiled(t(3), m)
            next(made)
            del m
            assert ref() is not None
            del made
            assert ref() is None
        alive = []
        for call in (f, compiled):
            m = Marker()
            ref = weakref.ref(m)
            made = call(t(3), m)
            made.close()
            del m
            alive.append(ref() is not None)
        assert alive[0] == alive[1]  # CPython 3.12 keeps a closed generator's locals
        assert compiled(t(3), Marker()).gi_frame.f_locals.keys() == {"held", "i", "x"}
    cdynamo.reset()


def test_stack_values_of_a_generator_die_with_its_loop():
    class Marker:
        pass

    def f(x):
        def g():
            for m in iter([Marker()]):
                yield weakref.ref(m)
                del m
            yield None

        made = g()
        return made, next(made), x + 1

    cdynamo.reset()
    compiled = cdynamo.compile(f, backend="eager")
    made, ref, _ = compiled(t(3))
    if isinstance(ref, weakref.ref):
        assert ref() is not None
    assert next(made) is None
    gc.collect()
    assert ref is None or ref() is None
    cdynamo.reset()


# ---- over a break ------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="UserBreak")
def break_in_a_loop_over_zip_and_generator(x):
    out = []
    for i, (p, q) in enumerate(zip(numbers(3), itertools.cycle([1, 2]))):
        x = x + i
        torch._dynamo.graph_break()
        out.append((i, p, q))
    return x, out


@case(lambda: (t(3),), skip="UserBreak")
def break_with_iterators_in_locals(x):
    g = numbers(5)
    next(g)
    m = map(lambda v: v, g)
    next(m)
    a, b = itertools.tee([1, 2, 3])
    next(a)
    torch._dynamo.graph_break()
    return x + 1, list(m), list(g), list(a), list(b)


@case(lambda: (t(3),), skip="UserBreak")
def break_in_library_iterators(x):
    out = []
    for k, v in {"a": 1, "b": 2}.items():
        x = x + v
        torch._dynamo.graph_break()
        out.append(k)
    for c in itertools.chain([1], [2, 3]):
        x = x * c
        torch._dynamo.graph_break()
    for k, group in itertools.groupby("aabb"):
        torch._dynamo.graph_break()
        for m in group:
            torch._dynamo.graph_break()
            out.append((k, m))
    return x, out


@case(lambda: (t(3, 3),), skip="UserBreak")
def break_in_autocast(x):
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.enable_grad():
            y = torch.mm(x, x)
            torch._dynamo.graph_break()
            z = torch.mm(x, x)
            inside = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
        between = torch.is_grad_enabled()
    return y, z, inside, between, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")


@case(lambda: (t(3),), skip="UserBreak")
def break_in_inference_mode(x):
    with torch.inference_mode():
        y = x + 1
        torch._dynamo.graph_break()
        z = x + 2
    return y, z, torch.is_grad_enabled(), torch.is_inference_mode_enabled()


@case(lambda: (t(3),), skip="UserBreak")
def break_while_handling(x):
    try:
        raise ValueError("a")
    except ValueError as error:
        y = x + 1
        torch._dynamo.graph_break()
        try:
            raise
        except ValueError as again:
            same = again is error
    return y + 1, same


@case(lambda: (t(3),), skip="UserBreak")
def break_inside_a_generator(x):
    out = []

    def g():
        try:
            yield x + 1
            torch._dynamo.graph_break()
            yield x + 2
        finally:
            out.append("finally")

    return [v * 2 for v in g()], out


test_rebuild = cases.as_test(__name__)
