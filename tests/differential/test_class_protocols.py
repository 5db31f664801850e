"""Special methods: operators with all their rules, conversions, containers, iteration, text, keys of dicts and sets."""

import operator

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


class Num:
    """Every binary operator, answering with its own name; `deaf` ones give NotImplemented."""

    def __init__(self, v, deaf=()):
        self.v, self.deaf = v, deaf

    def answer(self, name, other):
        if name in self.deaf:
            return NotImplemented
        return (type(self).__name__, name, other.v if isinstance(other, Num) else other)


for _n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor", "matmul", "divmod"):
    for _p in ("", "r", "i"):
        if _p + _n != "idivmod":

            def _op(self, other, *rest, _name=_p + _n):
                return self.answer(_name, other)

            setattr(Num, f"__{_p}{_n}__", _op)
for _n in ("neg", "pos", "invert", "abs"):

    def _un(self, _name=_n):
        return (_name, self.v)

    setattr(Num, f"__{_n}__", _un)


class Sub(Num):
    def __radd__(self, other):
        return ("Sub.radd", other.v if isinstance(other, Num) else other)


class SubSame(Num):
    """Does not override the reflected methods: no priority."""


class Cmp:
    log: list[str] = []

    def __init__(self, v, answer=True):
        self.v, self.answer = v, answer

    def reply(self, name, other):
        Cmp.log.append(f"{type(self).__name__}.{name}")
        return NotImplemented if self.answer is NotImplemented else getattr(operator, name)(self.v, getattr(other, "v", other))

    def __lt__(self, o):
        return self.reply("lt", o)

    def __le__(self, o):
        return self.reply("le", o)

    def __gt__(self, o):
        return self.reply("gt", o)

    def __ge__(self, o):
        return self.reply("ge", o)

    def __eq__(self, o):
        return self.reply("eq", o)

    def __ne__(self, o):
        return self.reply("ne", o)

    __hash__ = None


class SubCmp(Cmp):
    pass


class Conv:
    def __int__(self):
        return 3

    def __float__(self):
        return 2.5

    def __complex__(self):
        return 1j

    def __index__(self):
        return 2

    def __round__(self, n=None):
        return ("round", n)

    def __trunc__(self):
        return 7

    def __floor__(self):
        return 8

    def __ceil__(self):
        return 9

    def __bytes__(self):
        return b"conv"

    def __hash__(self):
        return 77

    def __eq__(self, o):
        return isinstance(o, Conv)


class Text:
    def __str__(self):
        return "text-str"

    def __repr__(self):
        return "text-repr"

    def __format__(self, spec):
        return f"text-format({spec})"


class OnlyRepr:
    def __repr__(self):
        return "<only>"


class Seq:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, k):
        if isinstance(k, slice):
            return Seq(self.items[k])
        return self.items[k]

    def __setitem__(self, k, v):
        self.items[k] = v

    def __delitem__(self, k):
        del self.items[k]


class Box:
    def __init__(self, items):
        self.items = list(items)

    def __iter__(self):
        return iter(self.items)

    def __reversed__(self):
        return iter(["rev"])

    def __contains__(self, v):
        return v == "magic"

    def __length_hint__(self):
        return 50

    def __bool__(self):
        return bool(self.items)


class CountDown:
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Key:
    """Equal by value; says what was asked of it."""

    log: list[str] = []

    def __init__(self, v, h=None):
        self.v, self.h = v, h

    def __hash__(self):
        Key.log.append(f"hash {self.v}")
        return hash(self.v) if self.h is None else self.h

    def __eq__(self, o):
        Key.log.append(f"eq {self.v} {getattr(o, 'v', o)}")
        return isinstance(o, Key) and self.v == o.v


class Silent:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return hash(self.v)

    def __eq__(self, o):
        return isinstance(o, Silent) and self.v == o.v


class SameHash:
    def __init__(self, v):
        self.v = v

    def __hash__(self):
        return 1

    def __eq__(self, o):
        if not isinstance(o, SameHash):
            return NotImplemented
        return self.v == o.v


class NeverEqual:
    def __hash__(self):
        return 1

    def __eq__(self, o):
        return False


class BadHash:
    def __hash__(self):
        return "no"


class RaisingHash:
    def __hash__(self):
        raise ValueError("no hash")


class Missing(dict):
    def __missing__(self, k):
        self[k] = k * 2
        return self[k]


class Callable_:
    def __call__(self, *a, **k):
        return (a, sorted(k.items()))


def missing(mapping, key):
    try:
        return mapping[key]
    except KeyError as e:
        return e.args[0] is key


# ---- operators -------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def binary_operators(x):
    a, b = Num(1), Num(2)
    return x + 1, a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b, a @ b, divmod(a, b), pow(a, b)


@case(lambda: (t(3),))
def reflected_operators(x):
    b = Num(2)
    return x + 1, 1 + b, 1 - b, 1 * b, 1 / b, 1 // b, 1 % b, 1**b, 1 << b, 1 >> b, 1 & b, 1 | b, 1 ^ b, 1 @ b, divmod(1, b), [1] + b, "a" + b, [1] * b


@case(lambda: (t(3),))
def in_place_operators(x):
    out = []
    for op in (
        operator.iadd, operator.isub, operator.imul, operator.itruediv, operator.ifloordiv, operator.imod, operator.ipow,
        operator.ilshift, operator.irshift, operator.iand, operator.ior, operator.ixor, operator.imatmul,
    ):  # fmt: skip
        out.append(op(Num(1), 2))
    a = Num(1)
    a += 5
    b = Num(1, deaf=("iadd",))
    b += 6
    c = Num(1, deaf=("iadd", "add"))
    d = outcome(lambda: operator.iadd(c, 7))
    e = 3
    e -= Num(4)
    return x + 1, out, a, b, d, e


@case(lambda: (t(3),))
def percent_is_formatting(x):
    return x + 1, outcome(lambda: "a" % Num(1))  # noqa: F507


@case(lambda: (t(3),))
def not_implemented_rules(x):
    deaf = Num(1, deaf=("add", "sub", "mul", "lshift", "radd"))
    return (
        x + 1,
        outcome(lambda: deaf + Num(2)),
        deaf + Sub(2),
        outcome(lambda: deaf + Num(2, deaf=("radd",))),
        outcome(lambda: deaf - 3),
        outcome(lambda: deaf * "a"),
        outcome(lambda: deaf << 1.5),
        outcome(lambda: 1 + deaf),
        outcome(lambda: deaf + deaf),
    )


@case(lambda: (t(3),))
def subclass_priority(x):
    return x + 1, Num(1) + Sub(2), Num(1) - Sub(2), Num(1) + SubSame(2), Sub(1) + Num(2), Num(1, deaf=("add",)) + SubSame(2)


@case(lambda: (t(3),))
def unary_operators(x):
    a = Num(3)
    return x + 1, -a, +a, ~a, abs(a), operator.neg(a), outcome(lambda: -Text()), outcome(lambda: ~Text()), outcome(lambda: abs(Text()))


@case(lambda: (t(3), Num(4)))
def operators_with_tensors(x, n):
    class T:
        def __radd__(self, o):
            return o * 2

        def __rmul__(self, o):
            return o + 5

    return x + T(), x * T(), n + 1


@case(lambda: (t(3), Cmp(1), SubCmp(2)))
def comparisons(x, a, b):
    Cmp.log.clear()
    r = (a < b, a <= b, a > b, a >= b, a == b, a != b, a < 3, 3 < a, 1 == a)
    return x + 1, r, list(Cmp.log)


@case(lambda: (t(3),))
def comparison_not_implemented(x):
    Cmp.log.clear()
    a, b = Cmp(1, NotImplemented), Cmp(2, NotImplemented)
    r = (a == b, a != b, a == a, outcome(lambda: a < b), outcome(lambda: a >= 3))
    return x + 1, r, list(Cmp.log)


@case(lambda: (t(3),))
def comparison_values_not_bool(x):
    class V:
        def __lt__(self, o):
            return [1]

        def __eq__(self, o):
            return "yes"

    a = V()
    return x + 1, a < 1, a == 1, a != 1, 3 > a, "t" if a < 1 else "f", not (a == 2), a in [V()], [V()].index(a)


@case(lambda: (t(3),))
def ne_from_eq(x):
    class V:
        def __eq__(self, o):
            return 0

    class W:
        def __eq__(self, o):
            return NotImplemented

    return x + 1, V() != V(), W() != W(), W() == W()


@case(lambda: (t(3),))
def chained_comparison(x):
    calls = []

    class V:
        def __init__(self, v):
            self.v = v

        def __lt__(self, o):
            calls.append(self.v)
            return self.v < o.v

    return x + 1, V(1) < V(2) < V(3), V(3) < V(2) < V(1), calls


# ---- conversions -----------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def conversions(x):
    import math

    c = Conv()
    return (
        x + 1,
        int(c),
        float(c),
        complex(c),
        operator.index(c),
        round(c),
        round(c, 2),
        math.trunc(c),
        math.floor(c),
        math.ceil(c),
        bytes(c),
        hash(c),
        hex(c),
        bin(c),
        [1, 2, 3][c],
        "abc"[c],
        (1, 2, 3)[:c],
        range(5)[c],
        x[c],
        chr(c),
        list(range(c)),
        [0] * c,
        math.sqrt(c),
    )


@case(lambda: (t(3),))
def bad_conversions(x):
    class Bad:
        def __index__(self):
            return "a"

        def __bool__(self):
            return 3

        def __len__(self):
            return -1

        def __str__(self):
            return 5

        def __repr__(self):
            return None

        def __hash__(self):
            return 1.5

        def __iter__(self):
            return 3

        def __contains__(self, v):
            return [v]

        def __float__(self):
            return "f"

        def __int__(self):
            return "i"

        def __format__(self, s):
            return 3

    b = Bad()
    actions = [
        lambda: [1][b], lambda: bool(b), lambda: len(b), lambda: str(b), lambda: repr(b), lambda: hash(b), lambda: iter(b), lambda: 3 in b,
        lambda: float(b), lambda: int(b), lambda: f"{b}", lambda: not b, lambda: {b: 1}, lambda: list(b), lambda: format(b, "x"),
    ]  # fmt: skip
    return x + 1, [outcome(a) for a in actions]


@case(lambda: (t(3),))
def missing_protocols(x):
    o = OnlyRepr()
    actions = [
        lambda: len(o), lambda: o[0], lambda: iter(o), lambda: next(o), lambda: o(), lambda: 3 in o, lambda: int(o), lambda: float(o), lambda: [1][o],
        lambda: o + 1, lambda: o < 1, lambda: -o, lambda: reversed(o), lambda: round(o), lambda: operator.setitem(o, 0, 1), lambda: operator.delitem(o, 0),
        lambda: format(o, "x"), lambda: abs(o), lambda: bytes(o), lambda: complex(o), lambda: [*o], lambda: divmod(o, 1), lambda: {**o},
    ]  # fmt: skip
    return x + 1, [outcome(a) for a in actions]


@case(lambda: (t(3),))
def text_of_objects(x):
    o, r = Text(), OnlyRepr()
    return (
        x + 1,
        str(o),
        repr(o),
        f"{o}",
        f"{o!r}",
        f"{o!s:>12}",
        f"{o:abc}",
        "%s|%r" % (o, o),
        "{} {!r} {:z}".format(o, o, o),
        str(r),
        f"{r}",
        [o],
        str([o]),
        repr((r,)),
        str({"a": o}),
    )


@case(lambda: (t(3),))
def truth_rules(x):
    class L:
        def __init__(self, n):
            self.n = n

        def __len__(self):
            return self.n

    return (
        x + 1,
        bool(L(0)),
        bool(L(2)),
        not L(0),
        bool(Box([])),
        bool(Box([1])),
        L(0) or 3,
        Box([1]) and 4,
        bool(OnlyRepr()),
        [1 if L(i) else 0 for i in range(2)],
    )


# ---- containers and iteration ----------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def sequence_protocol(x):
    s = Seq([x, 2, 3])
    s[1] = 5
    del s[2]
    return (
        s[0] + s[1],
        len(s),
        list(s),
        list(reversed(s)),
        5 in Seq([1, 5]),
        9 in Seq([1]),
        s[:1].items,
        [*s],
        tuple(s),
        max(Seq([1, 4, 2])),
        sorted(Seq([3, 1])),
    )


@case(lambda: (t(3), Seq([1, 2, 3])))
def sequence_argument(x, s):
    a, b, c = s
    s[0] = x + 1
    for v in s:
        x = x + v
    return x, a, b, c, list(zip(s, s)), list(enumerate(s))[1]


@case(lambda: (t(3),))
def custom_container(x):
    b = Box([1, x])
    return list(b)[1] + 1, list(reversed(b)), "magic" in b, 1 in b, [*b][0], dict(enumerate(b))[0], sum(Box([1, 2]))


@case(lambda: (t(3), CountDown(3)))
def iterator_protocol(x, c):
    out = []
    for v in c:
        out.append(v)
    c.n = 2
    return x + 1, out, next(c), next(c), next(c, "end"), outcome(lambda: next(c)), list(CountDown(3)), max(CountDown(4)), 2 in CountDown(5)


@case(lambda: (t(3),))
def missing_hook(x):
    d = Missing(a=1)
    return x + d[3], d["a"], d.get("zz"), dict(d), d, "q" in d, d.setdefault("n", 4)


@case(lambda: (t(3),))
def call_protocol(x):
    c = Callable_()
    return c(x + 1, 2, k=3), c(*[1], **{"z": 2}), callable(c), callable(OnlyRepr()), list(map(c, [1]))


@case(lambda: (t(3),))
def iter_none_blocks(x):
    class N:
        __iter__ = None
        __contains__ = None
        __hash__ = None

        def __getitem__(self, i):
            return i

    return x + 1, outcome(lambda: iter(N())), outcome(lambda: 1 in N()), outcome(lambda: hash(N())), outcome(lambda: {N()})


# ---- keys ------------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def keys_by_value(x):
    d = {Silent(1): x + 1, Silent(2): 5}
    d[Silent(1)] = x + 2
    d[Silent(3)] = 7
    return d[Silent(1)], len(d), Silent(2) in d, Silent(9) in d, d.get(Silent(9), "no"), [k.v for k in d], d.pop(Silent(2)), len(d)


@case(lambda: (t(3),))
def keys_collide(x):
    a, b = SameHash(1), SameHash(2)
    d = {a: 1, b: 2, 1: "int"}
    d[SameHash(2)] = x + 3
    return d[b], d[a], len(d), d[1], {a, b, SameHash(1)} == {SameHash(2), SameHash(1)}, list(d)[0] is a


@case(lambda: (t(3),))
def key_protocol_order(x):
    Key.log.clear()
    a, b = Key(1, 7), Key(2, 7)
    d = {a: 1, b: 2}
    r = [d[a], d[Key(2, 7)], Key(3, 7) in d, Key(1, 8) in d]
    s = {a, b, Key(1, 7)}
    return x + 1, r, len(s), list(Key.log)


@case(lambda: (t(3),))
def key_identity_first(x):
    n = NeverEqual()
    d = {n: 4}
    return x + d[n], NeverEqual() in d, n in [n], [n].index(n), {n} == {n}, len({n, NeverEqual(), n})


@case(lambda: (t(3), {Silent(1): 2, Silent(5): 3}), captures=(1,))
def keys_in_argument(x, d):
    d[Silent(6)] = 8
    d[Silent(1)] += 1
    return x * d[Silent(5)], Silent(7) in d, len(d), [k.v for k in d]


@case(lambda: (t(3), {1: "a"}, {3}))
def key_among_constants(x, d, s):
    class IntLike:
        def __hash__(self):
            return hash(1)

        def __eq__(self, o):
            return o == 1

    return x + 1, d[IntLike()], IntLike() in s, {1: 5}[IntLike()], 1 in {IntLike(): 2}


@case(lambda: (t(3),))
def keys_in_sets(x):
    s = {Silent(1), Silent(2)}
    s.add(Silent(1))
    s.discard(Silent(2))
    u = frozenset([Silent(4), Silent(4)])
    return x + len(s), len(u), Silent(4) in u, len(s | {Silent(1), Silent(3)}), s == {Silent(1)}, len(s & {Silent(1)}), s <= {Silent(1), Silent(0)}


@case(lambda: (t(3),))
def keys_in_tuples(x):
    d = {(1, Silent(2)): 3, ("a", (Silent(3),)): 4}
    return x + d[1, Silent(2)], d["a", (Silent(3),)], (1, Silent(3)) in d


@case(lambda: (t(3),))
def key_errors(x):
    return (
        x + 1,
        outcome(lambda: {BadHash(): 1}),
        outcome(lambda: {RaisingHash()}),
        missing({Silent(1): 1}, Silent(2)),
        outcome(lambda: hash(Cmp(1))),
        outcome(lambda: {Cmp(1): 2}),
        outcome(lambda: {}[Cmp(1)]),
    )


@case(lambda: (t(3),))
def keys_returned(x):
    k = Silent(3)
    d = {k: x + 1, Silent(4): 2}
    return d, k, {Silent(3)}


@case(lambda: (t(3),))
def keys_in_library(x):
    import collections

    c = collections.Counter([Silent(1), Silent(2), Silent(1)])
    o = collections.OrderedDict([(Silent(1), 2)])
    dd = collections.defaultdict(list)
    dd[Silent(1)].append(x)
    dd[Silent(1)].append(2)
    return x + c[Silent(1)], o[Silent(1)], len(dd), dict.fromkeys([Silent(1), Silent(1)]).__len__(), dict([(Silent(2), 4)])[Silent(2)]


@scenario(captures=(1, 1))
def keys_of_a_cache():
    cache = {}

    def f(x, k):
        if k not in cache:
            cache[k] = x + 1
        return cache[k] * 2

    return Setup(f, lambda: (t(3), Silent(4)), watch=lambda: len(cache))


@case(lambda: (t(3),))
def hash_function(x):
    return (
        x + 1,
        hash(Silent(5)) == hash(5),
        hash((1, Silent(2))) == hash((1, 2)),
        hash(Silent("a")) == hash("a"),
        Silent(1) == Silent(1),
        hash(SameHash(3)),
    )


@case(lambda: (t(3),))
def big_hash_values(x):
    class Big:
        def __hash__(self):
            return 2**70 + 3

    class MinusOne:
        def __hash__(self):
            return -1

    return x + 1, hash(Big()) == hash(2**70 + 3), hash(MinusOne())


@case(lambda: (t(3),))
def list_methods_use_eq(x):
    items = [Silent(1), Silent(2), Silent(1)]
    n = items.count(Silent(1))
    items.remove(Silent(2))
    return (
        x + n,
        items.index(Silent(1)),
        Silent(2) in items,
        [Silent(1)] == [Silent(1)],
        (Silent(1), 2) == (Silent(1), 2),
        {"a": Silent(1)} == {"a": Silent(1)},
        [Silent(1)] != [Silent(2)],
    )


test_class_protocols = cases.as_test(__name__)
