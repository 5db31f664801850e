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

import cdynamo
import torch
from differ import Cases, Setup, t

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
    its = [reversed(own), reversed(given), reversed(pair), reversed("abc"), reversed(table), reversed(table.items()), reversed(collections.deque(own))]
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
    l, d = MyList([x, 1, 2]), MyDict(a=1, b=2)
    a, b, c = iter(l), iter(d.items()), d.values()
    next(a), next(b)
    return l, d, a, b, list(c), x + 1


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
    a, b, c, e = itertools.starmap(pow, [(2, 3), (3, 2)]), itertools.compress("abcd", [1, 0, 1, 1]), itertools.pairwise(given), itertools.pairwise([1])
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
        return x + 1, operator.itemgetter(1), operator.itemgetter(0, 2), operator.attrgetter("real"), functools.cmp_to_key(lambda p, q: q - p), operator.methodcaller("index", 3)

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
        m = Marker()
        ref = weakref.ref(m)
        made = compiled(t(3), m)
        assert made.gi_frame.f_locals.keys() == {"held", "i", "x"}
        made.close()
        del m
        assert ref() is None
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


# ---- exceptions --------------------------------------------------------------------------------------------------------


class Plain(Exception):
    pass


class Detailed(ValueError):
    def __init__(self, code, extra):
        super().__init__(f"code {code}")
        self.code = code
        self.extra = extra


@case(lambda: (t(3),))
def exceptions_returned(x):
    out = [Plain(), Plain("a", 1), Detailed(3, x), KeyError("k"), OSError(2, "gone"), OSError(2, "gone", "file"), StopIteration(5), SystemExit(3)]
    for make in (lambda: {}["missing"], lambda: [][1], lambda: None.nothing, lambda: undefined_name, lambda: int("q"), lambda: 1 // 0):
        try:
            make()
        except Exception as error:
            out.append(error)
    return out, x + 1


@case(lambda: (t(3),))
def exception_chains(x):
    try:
        try:
            raise Plain("first")
        except Plain as error:
            raise Detailed(1, x) from error
    except Detailed as error:
        caused = error
    try:
        try:
            raise KeyError("first")
        except KeyError:
            raise Plain("second")
    except Plain as error:
        during = error
    try:
        try:
            raise Plain("first")
        except Plain:
            raise KeyError("second") from None
    except KeyError as error:
        hidden = error
    return caused, during, hidden, x + 1


@case(lambda: (t(3),))
def exception_attributes(x):
    e = Plain("a")
    e.note = x
    e.args = ("b", 2)
    e.__cause__ = KeyError("c")
    return e, x + 1


@case(lambda: (t(3),))
def exception_groups(x):
    inner = [Plain("a"), KeyError("b")]
    g = ExceptionGroup("both", inner)
    return g, g.exceptions[0] is inner[0], inner, x + 1


@case(lambda: (t(3),))
def exception_keywords(x):
    return AttributeError("m", name="n", obj=3), NameError("m", name="n"), ImportError("m", name="n", path="p"), x + 1


@case(lambda: (t(3),))
def exception_notes(x):
    e = Plain("a")
    e.add_note("first")
    e.add_note("second")
    return e, e.__notes__, x + 1


@case(lambda: (t(3),))
def exception_raised_while_handling(x):
    try:
        try:
            raise Plain("first")
        except Plain:
            {}["missing"]
    except KeyError as error:
        implicit = error
    try:
        try:
            int("a")
        except ValueError:
            {}["missing"]
    except KeyError as error:
        both_real = error
    return implicit, both_real, x + 1


@case(lambda: (t(3),))
def exception_in_a_cycle(x):
    box = []
    e = Plain(box)
    box.append(e)
    return e, box, x + 1


@case(lambda: (t(3),))
def same_exception_twice(x):
    try:
        {}["k"]
    except KeyError as error:
        kept = error
    return kept, [kept], x + 1


# ---- descriptors, functions, methods -----------------------------------------------------------------------------------


@case(lambda: (t(3),))
def descriptors(x):
    def get(self):
        return 1

    p, s, c = property(get), staticmethod(get), classmethod(get)
    return [p, s, c], p.fget is get, s.__func__ is get, get, x + 1


@scenario()
def super_objects():
    class A:
        def who(self):
            return "A"

    class B(A):
        def who(self):
            return "B"

        def up(self, x):
            return super(), x + 1

    return Setup(lambda b, x: b.up(x), lambda: (B(), t(3)), after=lambda r: r[0].who())


@case(lambda: (t(3),))
def slices(x):
    s = slice(x, None, 2)
    return s.start, [s, s][0] is s, slice(1, 2), x + 1


@scenario()
def slices_with_tensors():
    return Setup(lambda x: (slice(x, x + 1), x * 2), lambda: (t(3),), after=lambda r: (r[0].start, r[0].stop, r[0].step))


@scenario()
def dict_views():
    def f(x):
        d = {"a": x, "b": 2}
        o = collections.OrderedDict(d)
        return d, d.keys(), d.values(), d.items(), o.keys(), x + 1

    def after(r):
        r[0]["c"] = 3
        return [type(v) for v in r], [list(v) for v in r[1:5]]

    return Setup(f, lambda: (t(3),), after=after)


@scenario()
def builtin_methods():
    def f(x):
        l, d, s = [1], {"a": 1}, {1}
        return l, d, s, l.append, d.get, s.add, l.__len__, d.__getitem__, "abc".upper, dict.fromkeys, x.add, x + 1

    def after(r):
        l, d, s, append, get, add, length, item, upper, fromkeys, plus, y = r
        append(2)
        add(3)
        return l, s, get("a"), length(), item("a"), upper(), fromkeys("ab"), plus(1), [type(v) for v in r]

    return Setup(f, lambda: (t(3),), after=after)


@scenario()
def partials():
    def f(x):
        def g(*a, **k):
            return a, k

        p = functools.partial(g, x, 1, k=2)
        p.note = "attribute"
        q = functools.partial(p, 3, other=x)
        return p, q, x + 1

    def after(r):
        return r[0](5), r[1](6), r[0].note, r[0].args, r[1].args, r[0].keywords, r[1].keywords, type(r[0]) is functools.partial

    return Setup(f, lambda: (t(3),), after=after)


@case(lambda: (t(3),))
def functions(x):
    def plain(a: int, b: "str" = x, *, k: float = 2, m=x) -> list:
        """A doc."""
        return a

    plain.attribute = [x]

    def renamed():
        pass

    renamed.__name__ = "other"
    renamed.__qualname__ = "some.other"
    renamed.__doc__ = "new doc"
    renamed.__module__ = "elsewhere"

    @functools.wraps(plain)
    def wrapper(*args):
        return plain(*args)

    return plain, renamed, wrapper, x + 1


@case(lambda: (t(3),))
def annotations_read_then_kept(x):
    def f(a: int) -> str:
        return a

    notes = f.__annotations__
    notes["more"] = x
    return f, notes, x + 1


@case(lambda: (t(3),))
def cells_shared(x):
    n = 1

    def inc():
        nonlocal n
        n += 1
        return n

    def get():
        return n

    inc()
    return inc, get, n, x + 1


@case(lambda: (t(3),))
def functions_that_hold_each_other(x):
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    def late(default=[even]):
        return default

    return even, odd, late, x + 1


# ---- classes and structures --------------------------------------------------------------------------------------------


Point = collections.namedtuple("Point", "a b")


@dataclasses.dataclass
class Data:
    a: object
    b: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: int = 3


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: int = 3


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Node:
    def __init__(self, value):
        self.value = value
        self.next = None


class Guarded:
    __slots__ = ("a", "b", "__dict__")

    def __setattr__(self, name, value):
        object.__setattr__(self, name, ("set", value))


class MyTuple(tuple):
    pass


@case(lambda: (t(3),))
def classes(x):
    d, s, g = Data(x), Slotted(x, 4), Guarded()
    g.a = x
    g.c = 3
    del s.b
    return Point(x, [1]), d, Frozen(x), s, g, Colour.RED, [Colour.BLUE], x + 1


@case(lambda: (t(3),))
def list_in_itself(x):
    l = [x]
    l.append(l)
    return l, x + 1


@case(lambda: (t(3),))
def tuple_in_itself(x):
    l = [x]
    pair = (l, 1)
    l.append(pair)
    return pair, x + 1


@case(lambda: (t(3),))
def subclass_of_tuple_in_itself(x):
    l = []
    pair = MyTuple((l, x))
    l.append(pair)
    pair.back = pair
    p = Point(l, 2)
    l.append(p)
    return p, pair, x + 1


@case(lambda: (t(3),))
def dict_and_object_cycles(x):
    a, b = Node(x), Node({})
    a.next, b.next = b, a
    b.value["a"] = a
    b.value["self"] = b.value
    d = collections.defaultdict(list)
    d["d"].append(d)
    o = collections.OrderedDict()
    o["o"] = o
    return (a, [b]), d, o, x + 1


@case(lambda: (t(3),))
def cyclic_deque(x):
    d = collections.deque([1], maxlen=4)
    d.append(d)
    d.appendleft(x)
    return (d,), x + 1


@case(lambda: (t(3),))
def deep_lists(x):
    l = [x]
    for _ in range(3000):
        l = [l]
    depth, inner = 0, l
    while isinstance(inner[0], list):
        inner, depth = inner[0], depth + 1
    return [l, 1][1], depth, x + 1


@scenario()
def deep_lists_returned():
    def f(x):
        l = [x]
        for _ in range(3000):
            l = [l, 1]
        return l, x + 1

    def after(r):
        depth, l = 0, r[0]
        while len(l) == 2:
            l, depth = l[0], depth + 1
        r[0].clear()
        return depth, l

    return Setup(f, lambda: (t(3),), after=after, watch=lambda: None)


@case(lambda: (t(3),), skip="Unreconstructable")
def deep_tuples_refused(x):
    p = (x,)
    for _ in range(3000):
        p = (p,)
    return Holder(p), x + 1


class Holder:
    def __init__(self, value):
        self.value = value

    @property
    def __dict__(self):
        return {}


@case(lambda: (t(3),))
def collections_kept(x):
    o = collections.OrderedDict(a=1, b=x, c=3)
    o.move_to_end("a")
    o.move_to_end("c", last=False)
    d = collections.defaultdict(list, k=[1])
    d["new"].append(x)
    c = collections.Counter("abca")
    c["z"] += 2
    q = collections.deque([1, 2, 3], maxlen=2)
    q.append(x)
    m = collections.ChainMap({"a": 1}, {"b": x})
    return o, d, c, q, m["b"], x + 1


@scenario()
def set_orders():
    def f(x):
        s = {"a", "b", "c", "d"}
        s.add("e")
        u = set(range(0, 100, 7))
        u.discard(14)
        u.add(1000)
        return s, u, frozenset([5, 3, 100]), x + 1

    return Setup(f, lambda: (t(3),), after=lambda r: [list(s) for s in r[:3]])


@case(lambda: (t(3), t(3)))
def tensors_kept(x, y):
    z = x + y
    z.tag = [z, 1]
    v = z.view(3)
    w = x.view(1, 3)
    return x, z, v, w, [x, y][1], z


# ---- effects -----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3), collections.deque([1, 2, 3], maxlen=4), {1, 2}, collections.OrderedDict(a=1, b=2, c=3), collections.Counter("aab")))
def containers_changed(x, q, s, o, c):
    q.append(x)
    q.appendleft(0)
    q.rotate(1)
    s.add(7)
    s.discard(1)
    o.move_to_end("a")
    o["d"] = x
    c["z"] += 1
    del c["a"]
    return x + 1


@case(lambda: (t(3), collections.deque([1, 2, 3])))
def deque_only_appended(x, q):
    q.append(x + 1)
    return x * 2


@scenario()
def set_order_after_changes():
    def f(x, s):
        s.add(100)
        s.discard(3)
        s.add(50)
        return x + 1

    kept = []

    def args():
        kept[:] = [set(range(8))]
        return (t(3), kept[0])

    return Setup(f, args, watch=lambda: list(kept[0]))


@case(lambda: (t(3), Slotted(1), Data(1), Plain("p"), types.ModuleType("made")), captures=(1,))
def objects_changed(x, s, d, e, m):
    s.a = x + 1
    del s.b
    d.new = [x]
    del d.b
    e.extra = x
    m.value = x
    return x + 1


@scenario(captures=(1,))
def function_attributes_changed():
    def g():
        pass

    g.gone = 1

    def f(x):
        g.calls = getattr(g, "calls", 0) + 1
        del g.gone
        g.gone = x
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: g.__dict__)


@scenario(captures=(1,))
def module_globals_changed():
    module = types.ModuleType("module_of_the_test")
    module.n = 0

    def f(x):
        module.n += 1
        module.last = x + 1
        return x + module.n

    return Setup(f, lambda: (t(3),), watch=lambda: module.__dict__.get("last"))


# ---- torch's contexts --------------------------------------------------------------------------------------------------


def leaving(manager):
    def f(x):
        c = manager()
        c.__enter__()
        return c, torch.mm(x, x)

    def after(r):
        inside = torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.mm(r[1].float(), r[1].float())
        r[0].__exit__(None, None, None)
        return inside, torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    return Setup(f, lambda: (t(3, 3),), after=after)


@scenario()
def autocast_entered():
    return leaving(lambda: torch.autocast("cpu", dtype=torch.bfloat16))


@scenario()
def inference_mode_entered():
    return leaving(lambda: torch.inference_mode())


@scenario()
def no_grad_entered():
    return leaving(lambda: torch.no_grad())


@scenario()
def enable_grad_entered_in_no_grad():
    def f(x):
        a, b = torch.no_grad(), torch.enable_grad()
        a.__enter__()
        b.__enter__()
        return a, b, x * 2

    def after(r):
        seen = [torch.is_grad_enabled()]
        r[1].__exit__(None, None, None)
        seen.append(torch.is_grad_enabled())
        r[0].__exit__(None, None, None)
        return seen, torch.is_grad_enabled()

    return Setup(f, lambda: (t(3, grad=True),), after=after)


test_rebuild = cases.as_test(__name__)
