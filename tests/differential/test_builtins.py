"""Builtin functions, math, operator, functools, itertools, re-usable iterators."""

import collections
import functools
import itertools
import math
import operator

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


@case(lambda: (t(3), [3, 1, 2]))
def sorting(x, items):
    return (
        x + 1, sorted(items), sorted(items, reverse=True), sorted("hello"), sorted([(1, "b"), (1, "a")]), sorted(items, key=lambda v: -v), sorted({"b": 1, "a": 2}),
        sorted([("a", 2), ("b", 1)], key=operator.itemgetter(1)), sorted([1.5, 1, True]), sorted([[2], [1, 5]]), sorted(["bb", "a"], key=len),
    )  # fmt: skip


@case(lambda: (t(3), [3, 1, 2]))
def min_max_sum(x, items):
    return (
        x * max(items),
        min(items),
        sum(items),
        sum([], 5),
        max(items, key=lambda v: -v),
        min([], default=7),
        max(1, 5, 3),
        sum([0.1] * 10),
        sum([[1], [2]], []),
        max("abc"),
        sum(i for i in items),
        min((2, "b"), (1, "z")),
    )


@case(lambda: (t(3), [1, 2, 3]))
def zip_enumerate_map_filter(x, items):
    return (
        x + 1, list(zip(items, "abc")), list(enumerate(items, 5)), list(map(lambda a, b: a * b, items, [4, 5, 6])), list(filter(lambda v: v > 1, items)), list(filter(None, [0, 1, ""])),
        list(reversed(items)), dict(zip("ab", items)), [a for a, *_ in zip(items, items)], list(zip()), list(zip(*[(1, 2), (3, 4)])), list(map(str, items)),
    )  # fmt: skip


@case(lambda: (t(3),))
def zip_strict_error(x):
    try:
        list(zip([1, 2], [1], strict=True))
    except ValueError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def any_all(x):
    return x + 1, any([0, 1]), all([1, 0]), any([]), all([]), any(i > 2 for i in range(5)), all(isinstance(i, int) for i in (1, 2))


@case(lambda: (t(3), 5, 2.5, "s"))
def isinstance_kinds(x, i, f, s):
    return (
        x + 1, isinstance(x, torch.Tensor), isinstance(i, int), isinstance(True, int), isinstance(f, (int, float)), isinstance(s, str | None), isinstance([], list), isinstance({}, collections.abc.Mapping),
        isinstance([], collections.abc.Sequence), isinstance(x, torch.nn.Parameter), isinstance(None, type(None)), isinstance(int, type), isinstance(lambda: 0, collections.abc.Callable), issubclass(bool, int), isinstance((), collections.abc.Iterable),
        type(i) is int, type(x) is torch.Tensor, type([]) == list, callable(x), callable(len), type(s).__name__,
    )  # fmt: skip


@case(lambda: (t(3), 7, -7, 2.5))
def numbers(x, i, j, f):
    return (
        x + 1, i // 2, j // 2, j % 3, divmod(j, 3), pow(i, 2), pow(i, -1, 5), round(f), round(2.675, 2), abs(j), int(f), float(i), complex(1, 2), bin(i), hex(255), int("ff", 16), i / 2, 2**i, ~i, i ^ 3, i << 2,
        f.is_integer(), i.bit_length(), (1.5).hex(), float("inf"), -f, +i, not i, i == 7.0, hash(1) == hash(1.0), int(True), bool(""), 0.1 + 0.2, 1e308 * 10, -0.0,
    )  # fmt: skip


@case(lambda: (t(3), 2.0))
def math_functions(x, f):
    return (
        x * math.sqrt(f),
        math.floor(2.7),
        math.ceil(2.1),
        math.log(f),
        math.pi,
        math.inf,
        math.isnan(math.nan),
        math.gcd(12, 18),
        math.prod([1, 2, 3]),
        math.exp(1),
        math.pow(2, 3),
        math.hypot(3, 4),
        math.isclose(1.0, 1.0 + 1e-12),
        math.trunc(2.5),
        math.log2(8),
        math.comb(5, 2),
        math.copysign(1, -0.0),
    )


@case(lambda: (t(3), t(3, seed=1)))
def operator_module(x, y):
    return (
        operator.add(x, y), operator.mul(2, 3), operator.itemgetter(1)([4, 5]), operator.attrgetter("shape")(x), operator.getitem([1, 2], 0), operator.truth([]), operator.not_(0), operator.contains([1], 1), operator.neg(x),
        operator.methodcaller("sin")(x), operator.itemgetter(0, 2)("abc"), operator.is_(x, x), operator.eq(1, 1.0), operator.iadd([1], [2]), operator.concat([1], [2]), operator.index(3),
    )  # fmt: skip


@case(lambda: (t(3),))
def operator_inplace_on_list(x):
    a = [1]
    b = operator.iadd(a, [x])
    return a, b, a is b, x + 1


@case(lambda: (t(3),))
def functools_tools(x):
    add = functools.partial(operator.add, 5)
    return (
        functools.reduce(lambda a, b: a * b, [1, 2, 3, 4]),
        functools.reduce(operator.add, [x, x, x]),
        add(3),
        functools.reduce(lambda a, b: a + b, [], 7),
        sorted([3, 1], key=functools.cmp_to_key(lambda a, b: a - b)),
        x + 1,
    )


@scenario()
def singledispatch():
    @functools.singledispatch
    def g(v):
        return "other"

    @g.register
    def _(v: int):
        return "int"

    return Setup(lambda x: (x + 1, g(3), g("s")), lambda: (t(3),))


@case(lambda: (t(3), [1, 2, 3]))
def itertools_tools(x, items):
    return (
        x + 1, list(itertools.chain(items, "ab")), list(itertools.islice(itertools.count(5), 3)), list(itertools.product("ab", [1, 2])), list(itertools.accumulate(items)), list(itertools.zip_longest(items, [1], fillvalue=0)),
        list(itertools.takewhile(lambda v: v < 3, items)), list(itertools.dropwhile(lambda v: v < 2, items)), list(itertools.starmap(pow, [(2, 3), (3, 2)])), list(itertools.pairwise(items)), list(itertools.repeat(7, 3)),
        list(itertools.combinations(items, 2)), list(itertools.permutations(items, 2)), list(itertools.compress("abc", [1, 0, 1])), list(itertools.chain.from_iterable([[1], [2, 3]])), list(itertools.islice(itertools.cycle("ab"), 5)),
        [(k, list(g)) for k, g in itertools.groupby("aabbb")], list(itertools.filterfalse(lambda v: v % 2, items)), list(itertools.islice("abcdef", 1, None, 2)),
    )  # fmt: skip


@case(lambda: (t(3),))
def chain_is_lazy(x):
    log = []

    def gen():
        log.append("started")
        yield [1]
        log.append("second")
        yield [2]

    it = itertools.chain.from_iterable(gen())
    log.append("made")
    a = next(it)
    log.append("one")
    return x + a, log, list(it)


@case(lambda: (t(3),))
def groupby_is_lazy(x):
    log = []

    def gen():
        for i in [1, 1, 2]:
            log.append(i)
            yield i

    it = itertools.groupby(gen())
    k, g = next(it)
    log.append("k")
    return x + k, log, list(g)


@case(lambda: (t(3),))
def tee_is_lazy(x):
    log = []

    def gen():
        for i in range(3):
            log.append(i)
            yield i

    a, b = itertools.tee(gen())
    log.append("made")
    return x + next(a), log, list(a), list(b)


@case(lambda: (t(3), [1, 2, 3]))
def iterators_share_state(x, items):
    it = iter(items)
    a = next(it)
    b = list(it)
    pairs = list(zip(*[iter(range(6))] * 2))
    return x * a, b, pairs, list(it)


@case(lambda: (t(3), [1, 2, 3]))
def returns_iterators(x, items):
    it = iter(items)
    next(it)
    return it, iter((1, 2)), iter(range(3)), x + 1


@case(lambda: (t(3),))
def iter_with_sentinel(x):
    values = [3, 2, 1, 0]
    return list(iter(values.pop, 3)), x + 1


@case(lambda: (t(3),))
def ranges(x):
    r = range(2, 20, 3)
    return x * len(r), r[1], r[-1], list(r[1:3]), 5 in r, r.index(8), list(reversed(r)), range(3) == range(0, 3), r.start, r.step, r, sum(r), max(r)


@case(lambda: (t(3),))
def slices_as_values(x):
    s = slice(1, None, 2)
    return [1, 2, 3, 4][s], x[s], s.start, s.indices(5), slice(3) == slice(None, 3)


@case(lambda: (t(3),))
def star_expressions(x):
    a = [1, 2]
    b = {"k": 3}
    return [*a, *a], (*a, 5), {*a, 9}, {**b, "z": 1}, max(*a), x + 1, [*range(3), *"ab"], [*b]


@case(lambda: (t(3),))
def getattr_setattr_on_modules(x):
    return getattr(torch, "sin")(x), hasattr(torch, "nope"), getattr(torch, "nope", 4), getattr(x, "shape"), getattr(x, "nope", None)


@case(lambda: (t(3),))
def string_building(x):
    out = ""
    for i in range(3):
        out += f"{i},"
    return (
        x + 1,
        out.rstrip(","),
        "%d-%s" % (1, [1, 2]),
        "%r" % ["a"],
        "{!r} {:>4}".format(["q"], 3),
        "{0[0]} {a.real}".format([5], a=2),
        "%(k)s" % {"k": 1},
        "%5.2f|%-4s|" % (2.5, "a"),
    )


@case(lambda: (t(3), [1, [2]]))
def text_of_cyclic_list(x, items):
    a = [1]
    a.append(a)
    return x + 1, repr(a), str({"k": [1, (2, "b")]}), f"{items}"


@case(lambda: (t(3),))
def id_and_is(x):
    y = x
    a, b = (), ()
    return y is x, x is not None, (x + 1) is x, [x] is [x], a is b, x + 1


@case(lambda: (t(3),))
def hash_of_constants(x):
    return x + 1, hash((1, "a")) == hash((1, "a")), {(1, 2): 3}[1, 2], {frozenset([1]): 2}[frozenset([1])]


@case(lambda: (t(3),))
def type_constructors(x):
    return (
        x + 1,
        list("ab"),
        tuple([1]),
        set([1, 1]),
        dict(a=1),
        dict([("k", 2)]),
        str(5),
        int("7"),
        float("1.5"),
        bool([]),
        bytes([65]),
        frozenset(),
        list({"a": 1}),
        tuple(i for i in range(2)),
        list(range(3)),
        complex("1+2j"),
    )


@case(lambda: (t(3),))
def builtin_argument_errors(x):
    said = []
    for f in (
        lambda: len(),
        lambda: len(1, 2),
        lambda: isinstance(1),
        lambda: range(),
        lambda: range(1.5),
        lambda: [].insert("a", 1),
        lambda: [1].pop("a"),
        lambda: sorted(1),
        lambda: int([]),
        lambda: sum(["a"]),
        lambda: max(),
        lambda: next([]),
        lambda: iter(5),
        lambda: zip(1),
        lambda: abs("a"),
        lambda: chr(-1),
        lambda: ord("ab"),
        lambda: getattr(1),
        lambda: dict(1),
        lambda: set(1),
        lambda: reversed(5),
    ):
        try:
            f()
            said.append("no error")
        except Exception as error:
            said.append((type(error).__name__, str(error)))
    return x + 1, said


@case(lambda: (t(3),))
def fold_order_of_sum_with_tensors(x):
    return sum([x, x, 1]), sum([x], x), max([1, 2], key=lambda v: -v)


@case(lambda: (t(3),))
def dict_and_set_of_results(x):
    d = collections.OrderedDict()
    for name in ("a", "b"):
        d[name] = getattr(x, "sin" if name == "a" else "cos")()
    d.move_to_end("a")
    return d, list(d.items())


@case(lambda: (t(3),))
def namedtuple_made_inside(x):
    P = collections.namedtuple("P", "a b")
    return P(1, 2).a * x


@case(lambda: (t(3),))
def bytes_and_bytearray(x):
    return x + 1, b"abc"[1:], b"a" + b"b", bytes(3), b"abc".find(b"b")


@case(lambda: (t(3),))
def enumerate_with_tensor_rows(x):
    m = torch.stack([x, x])
    return [(i, r + i) for i, r in enumerate(m)], list(zip(m, "ab"))


@case(lambda: (t(3),))
def print_free_debugging(x):
    debug = False
    if debug:
        print(x)
    if __debug__:
        x = x + 1
    return x


@case(lambda: (t(3),))
def operator_call(x):
    return operator.call(torch.add, x, 1), operator.call(dict, a=1), operator.call(lambda *a, **k: (a, k), 1, b=2)


test_builtins = cases.as_test(__name__)
