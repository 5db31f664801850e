"""Objects of the library made by C code and used in captured code: mapping proxies, byte arrays, locks, hashes, patterns, signatures."""

import base64
import binascii
import collections
import copy
import dataclasses
import datetime
import fnmatch
import functools
import hashlib
import inspect
import logging
import operator
import os
import pathlib
import random
import re
import string
import struct
import sys
import threading
import types
import typing
import unicodedata
import uuid
import zlib

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- mapping proxies ---------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def proxy_made(x):
    d = {"a": 1}
    m = types.MappingProxyType(d)
    d["b"] = 2
    return x * m["b"], len(m), list(m), m.get("c", 7), "a" in m, dict(m), m | {"z": 1}, {"y": 0} | m, list(reversed(m)), repr(m)


@case(lambda: (t(3),))
def proxy_leaves(x):
    d = {"a": x + 1}
    m = types.MappingProxyType(d)
    d["m"] = x * 2
    return d, type(m), isinstance(m, types.MappingProxyType), isinstance(m, collections.abc.Mapping), m.copy(), list(m.items())


@case(lambda: (t(3),))
def proxy_refuses(x):
    m = types.MappingProxyType({"a": 1})

    def write():
        m["b"] = 1

    def delete():
        del m["a"]

    return x + 1, outcome(write), outcome(delete), outcome(lambda: m["q"]), outcome(lambda: {m: 1}), outcome(lambda: types.MappingProxyType([1]))


@case(lambda: (t(3),))
def proxy_compared(x):
    m, n = types.MappingProxyType({"a": 1}), types.MappingProxyType({"a": 1})
    return x + 1, m == n, m == {"a": 1}, m != {"a": 2}, n == 3, {**m, "k": 2}, (lambda **kw: kw)(**m)


@case(lambda: (t(3),))
def proxy_by_hand(x):
    m = types.MappingProxyType({"a": 1, "b": 2})
    return x + 1, list(types.MappingProxyType.keys(m)), types.MappingProxyType.get(m, "b"), list(types.MappingProxyType.values(m))


@scenario(after_change=(1, 1, 0))
def proxy_that_exists():
    held = {"scale": 2, "name": "a"}
    shown = types.MappingProxyType(held)

    def f(x):
        return x * shown["scale"], len(shown), "q" in shown, shown.get("none", 4), sorted(shown.keys())

    def scale():
        held["scale"] = 3

    def grow():
        held["q"] = 1

    return Setup(f, lambda: (t(3),), changes=[scale, grow, lambda: None])


@case(lambda: (t(3), types.MappingProxyType({"w": t(3, seed=2), "k": 2})))
def proxy_argument(x, m):
    return x * m["w"] + m["k"], list(m.items()), m.copy(), [k for k in m]


class Held:
    k = 1
    unit = "m"


@scenario(after_change=(1, 1, 1))
def class_namespace_is_guarded():
    class C:
        k = 1

    def f(x):
        return x * C.__dict__["k"], "late" in C.__dict__, C.__dict__.get("other"), len([n for n in vars(C) if not n.startswith("_")])

    def change():
        C.k = 5

    def add():
        C.late = 1

    def other():
        C.other = 2

    return Setup(f, lambda: (t(3),), changes=[change, add, other])


@scenario(after_change=(1,))
def static_attribute_is_guarded():
    class C:
        k = 1

    def f(x):
        return x * inspect.getattr_static(C, "k")

    def change():
        C.k = 3

    return Setup(f, lambda: (t(3),), changes=[change])


@case(lambda: (t(3),))
def class_namespace_leaves(x):
    return x + 1, Held.__dict__, type(Held.__dict__), dict(vars(Held))["unit"], Held.__dict__ == Held.__dict__


# ---- signatures --------------------------------------------------------------------------------------------------------


def sample(a, b=2, *c, d, e=5, **f):
    return a


@case(lambda: (t(3),))
def signature_bound(x):
    s = inspect.signature(sample)
    bound = s.bind(1, d=4, z=7)
    bound.apply_defaults()
    return x + 1, list(s.parameters), bound.arguments, bound.args, bound.kwargs, str(s), [p.kind for p in s.parameters.values()]


@case(lambda: (t(3),))
def signature_of_made_function(x):
    def g(a, b=x, *, c: int = 3) -> str:
        return a

    s = inspect.signature(g)
    return x + 1, list(s.parameters), s.parameters["b"].default is x, "a" in s.parameters, s.return_annotation, s.parameters["c"].annotation


@case(lambda: (t(3),))
def signature_of_made_class(x):
    class A:
        def __init__(self, a, b=1):
            pass

        def m(self, q, *, k=None):
            pass

    return x + 1, str(inspect.signature(A)), str(inspect.signature(A(1).m)), str(inspect.signature(A.m)), str(inspect.signature(lambda a, *, b: 0))


@case(lambda: (t(3),))
def signature_of_wrapped(x):
    def inner(a, b=2):
        return a

    @functools.wraps(inner)
    def outer(*args):
        return inner(*args)

    return outer(x) + 1, str(inspect.signature(outer)), inspect.unwrap(outer) is inner, str(inspect.signature(functools.partial(inner, 1)))


@case(lambda: (t(3),))
def signature_refuses(x):
    return x + 1, outcome(lambda: inspect.signature(sample).bind()), outcome(lambda: inspect.signature(sample).bind(1, 2, q=1))


@case(lambda: (t(3),))
def argument_spec(x):
    spec = inspect.getfullargspec(sample)
    return x + 1, spec.args, spec.varargs, spec.kwonlydefaults, spec.defaults


@scenario(after_change=(1, 1))
def signature_is_guarded():
    class C:
        def __init__(self, a):
            pass

    def g(a, b=1):
        pass

    def f(x):
        return x + 1, list(inspect.signature(C).parameters), str(inspect.signature(g))

    def init():
        C.__init__ = lambda self, q, r=2: None

    def defaults():
        g.__defaults__ = (7,)

    return Setup(f, lambda: (t(3),), changes=[init, defaults])


class Hinted:
    a: int
    b: typing.Optional[int] = None

    def f(self, q: list[int]) -> dict[str, int]:
        return {}


@case(lambda: (t(3),))
def type_hints(x):
    class Inner:
        a: int
        b: str

    return x + 1, typing.get_type_hints(Hinted), typing.get_type_hints(Hinted.f), typing.get_type_hints(Inner)


# 3.12's are made by C code.
@case(lambda: (t(3),), skip="ObjectConstruction" if sys.version_info >= (3, 12) else None)
def type_variables(x):
    variable, number = typing.TypeVar("variable"), typing.NewType("number", int)
    return x * number(3), variable.__name__, variable.__module__, number.__name__, typing.cast(int, "a")


# ---- byte arrays -------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def bytes_written(x):
    b = bytearray(b"abc")
    b.append(100)
    b[0] = 65
    b += b"zz"
    b.extend([1, 2])
    b[-1:] = b"!!"
    return x + len(b), bytes(b), b[1], b[1:3], b


@case(lambda: (t(3),))
def bytes_filled(x):
    b = bytearray(4)
    for i in range(4):
        b[i] = i * 2
    del b[0]
    b.insert(0, 9)
    last = b.pop()
    b.reverse()
    return x * sum(b), last, b.hex(), b.decode("latin1"), b == bytearray([4, 2, 9]), 4 in b, list(b), sorted(b), max(b)


@case(lambda: (t(3),))
def bytes_methods(x):
    b = bytearray(b"hello world")
    return (
        x + b.find(b"w"), b.upper(), b.split(), b.startswith(b"he"), bytearray.fromhex("ff00"), b.partition(b" "), b.replace(b"l", b"L"),
        b.count(b"o"), b.index(b"w"), b.title(), b.isalpha(), b.strip(b"h"), bytearray(b",").join([b"a", bytearray(b"c")]), b.zfill(13),
    )  # fmt: skip


@case(lambda: (t(3),))
def bytes_operators(x):
    b = bytearray(b"ab")
    c = b
    c *= 2
    return x + 1, b + b"c", b"c" + b, b * 2, 2 * b, b == b"abab", b < b"b", b != bytearray(), b is c, repr(b), bytearray(b"%d") % 3, not bytearray()


@case(lambda: (t(3),))
def bytes_refuse(x):
    b = bytearray(b"ab")

    def big():
        b[0] = 300

    def far():
        b[9] = 1

    return (
        x + 1, outcome(big), outcome(far), outcome(lambda: b.index(b"z")), outcome(lambda: b.append("a")), outcome(lambda: {b: 1}),
        outcome(lambda: bytearray("a")), outcome(lambda: bytearray([256])), outcome(lambda: b.remove(1)), outcome(lambda: b.nothing),
    )  # fmt: skip


@case(lambda: (t(3),))
def bytes_copied(x):
    b = bytearray(i for i in range(3))
    c, d, e = b.copy(), copy.copy(b), copy.deepcopy([b, b])
    b.clear()
    return x + 1, b, c, d, e, e[0] is e[1], type(c), isinstance(c, bytearray), bytearray("é", "utf8"), bytes(bytearray(b"q"))


@case(lambda: (t(3),))
def bytes_changed_while_read(x):
    b = bytearray(b"ab")
    seen = []
    for v in b:
        seen.append(v)
        if len(b) < 5:
            b.append(v + 2)
    it = iter(b)
    first = next(it)
    b[1] = 9
    ended = iter(bytearray())
    return (
        x + 1,
        seen,
        first,
        next(it),
        list(ended),
        it,
        [*b],
        dict(enumerate(b)),
        list(zip(b, b"xyz")),
        list(reversed(b)),
        b.count(9),
        list(map(str, b)),
    )


@case(lambda: (t(3),), skip="ObjectConstruction")
def bytes_over_a_break(x):
    b = bytearray(b"abc")
    b[1] = 0
    view = memoryview(b)
    return x + len(view), b, bytes(view[1:])


# ---- hashes, packing, texts ----------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def hashes(x):
    h = hashlib.sha1()
    h.update(b"a")
    k = h.copy()
    h.update(bytearray(b"b"))
    return x + 1, h.hexdigest(), k.digest(), h.digest_size, h.name, hashlib.md5(b"abc").hexdigest(), hashlib.sha256("z".encode()).hexdigest()[:8]


@case(lambda: (t(3),))
def hash_refuses(x):
    return x + 1, outcome(lambda: hashlib.md5("a")), outcome(lambda: hashlib.sha512().update(3)), hashlib.md5(usedforsecurity=False).hexdigest()


@scenario()
def hash_leaves():
    def f(x):
        h = hashlib.sha256(b"a")
        h.update(b"b")
        return x + 1, h

    return Setup(f, lambda: (t(3),), after=lambda result: result[1].hexdigest())


@case(lambda: (t(3),))
def packing(x):
    s = struct.Struct("<hi")
    return x + s.size, s.pack(3, 4), s.unpack(s.pack(1, 2)), s.format, struct.pack("<if", 1, 2.5), struct.calcsize("ii"), outcome(lambda: s.pack(1))


@case(lambda: (t(3),))
def encodings(x):
    return (
        x + 1, base64.b64encode(b"abc"), base64.b64decode("YWJj"), zlib.crc32(b"a"), zlib.decompress(zlib.compress(b"aa")),
        binascii.hexlify(b"a"), unicodedata.name("a"), unicodedata.normalize("NFC", "e\u0301"), base64.urlsafe_b64encode(b"??>"),
    )  # fmt: skip


@case(lambda: (t(3),))
def identifiers(x):
    u = uuid.UUID("12345678123456781234567812345678")
    return x + 1, u.hex, str(u), u.version, uuid.uuid5(uuid.NAMESPACE_DNS, "a").hex, u == uuid.UUID(int=u.int)


@case(lambda: (t(3),), skip="UnknownFunction")
def random_identifier(x):
    return x + 1, len(str(uuid.uuid4()))


@case(lambda: (t(3),))
def dates(x):
    d = datetime.date.fromisoformat("2020-02-28")
    dt = datetime.datetime.fromisoformat("2020-01-01T12:30:00")
    return (
        x * d.day, d + datetime.timedelta(days=2), d < datetime.date(2021, 1, 1), dt.replace(hour=1), (dt - datetime.datetime(2019, 1, 1)).days,
        datetime.datetime.combine(d, dt.time()), datetime.date.fromordinal(730000), outcome(lambda: datetime.date.fromisoformat("z")),
    )  # fmt: skip


@case(lambda: (t(3),), skip="UnknownFunction")
def current_time(x):
    return x + 1, datetime.date.today().year > 2000


@case(lambda: (t(3),))
def templates(x):
    s = string.Template("$a and ${b} $$ $c")
    return (
        x + 1, s.safe_substitute(a=1, b="z"), string.Template("$q").substitute({"q": 3}), outcome(lambda: string.Template("$a").substitute()),
        outcome(lambda: string.Template("$ ").substitute()), s.template,
    )  # fmt: skip


@case(lambda: (t(3),))
def formatter(x):
    f = string.Formatter()
    return (
        x + 1, f.format("{0} {a:>5} {b!r}", 1, a="z", b="q"), f.vformat("{}{}", (1, 2), {}), f.format("{0[k]} {1.real}", {"k": 1}, 2),
        list(f.parse("a{b:c}d")), outcome(lambda: f.format("{0}{}", 1)), outcome(lambda: f.format("{x}")),
    )  # fmt: skip


@case(lambda: (t(3),))
def ascii_texts(x):
    class A:
        def __repr__(self):
            return "é"

    return x + 1, ascii(A()), ascii("ü"), ascii([1, "ß"]), f"{A()!a}", "%a" % "é", "{!a}".format("ø")


# ---- patterns ----------------------------------------------------------------------------------------------------------

PATTERN = re.compile(r"(\w+)-(?P<num>\d+)")


@case(lambda: (t(3),))
def pattern_found(x):
    total = 0
    for m in re.finditer(r"\d+", "1 22 333"):
        x = x + int(m.group())
        total += m.end()
    return x, total, [m[1] for m in PATTERN.finditer("a-1 b-2")], PATTERN.groupindex["num"], PATTERN.groupindex


@case(lambda: (t(3),))
def pattern_replaced(x):
    scale = 3

    def by_number(m):
        return str(int(m["num"]) * scale)

    return (
        x + 1, PATTERN.sub(by_number, "a-1 b-2 c-3", count=2), re.sub(r"\d+", lambda m: m.group() * 2, "a1b22"), re.subn("a", lambda m: "", "aba"),
        PATTERN.sub(r"\2-\1", "a-1"), re.sub("a", "b", "aaa", count=2), re.sub("x*", lambda m: "-", "abxd"), re.subn("a", "b", "aa"),
    )  # fmt: skip


@case(lambda: (t(3),))
def pattern_refuses(x):
    return (
        x + 1, outcome(lambda: re.sub("a", lambda m: 3, "bab")), outcome(lambda: re.sub("a", lambda m: 1 / 0, "a")),
        outcome(lambda: re.sub("a", "b", 3)), outcome(lambda: re.compile("(")), outcome(lambda: PATTERN.match("a-1").group("q")),
    )  # fmt: skip


@case(lambda: (t(3),))
def pattern_replaced_by_state(x):
    seen = []

    def take(m):
        seen.append(m.span())
        return x.dtype.itemsize * "y"

    return x + 1, re.sub("[ab]", take, "cab"), seen


@scenario()
def matches_leave():
    def f(x):
        it = PATTERN.finditer("a-1 b-2 c-3")
        first = next(it)
        return x + 1, it, first.group(1)

    return Setup(f, lambda: (t(3),), after=lambda result: (type(result[1]), [m.group() for m in result[1]]))


@case(lambda: (t(3),))
def name_patterns(x):
    return x + 1, fnmatch.fnmatch("layer.0.weight", "layer.*.weight"), fnmatch.filter(["a", "b"], "a*"), fnmatch.fnmatchcase("A", "a")


# ---- paths, lengths, numbers ---------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def paths(x):
    class P:
        def __fspath__(self):
            return "/a/b"

    class Bad:
        def __fspath__(self):
            return 3

    p = pathlib.Path("/tmp") / "a" / "b.txt"
    return (
        x + 1, os.fspath(P()), os.path.join(P(), "c"), os.path.basename(P()), os.fspath(p), p.suffix, p.with_suffix(".py"), p.parts,
        outcome(lambda: os.fspath(3)), outcome(lambda: os.fspath(Bad())), os.path.splitext("a.b"),
    )  # fmt: skip


@case(lambda: (t(3),))
def length_hints(x):
    class A:
        def __init__(self, answer):
            self.answer = answer

        def __length_hint__(self):
            if self.answer is TypeError:
                raise TypeError("no")
            return self.answer

    hint = operator.length_hint
    return (
        x + hint(A(5)), hint([1, 2]), hint(object(), 4), hint(A(NotImplemented), 3), hint(A(TypeError), 2), outcome(lambda: hint(A(-1))),
        outcome(lambda: hint(A("a"))), outcome(lambda: hint([], "a")),
    )  # fmt: skip


# ---- locks, threads, loggers ---------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def locks(x):
    a, b = threading.Lock(), threading.RLock()
    with a:
        inside = a.locked(), a.acquire(blocking=False)
        with b, b:
            y = x + 1
    return y, inside, a.locked(), outcome(a.release), outcome(b.release), a.acquire(), a.locked()


@scenario()
def locks_leave():
    def f(x):
        a, b, c = threading.Lock(), threading.RLock(), threading.Lock()
        a.acquire()
        b.acquire()
        b.acquire()
        return x + 1, [a, b, c]

    def after(result):
        a, b, c = result[1]
        b.release()
        b.release()
        return a.locked(), outcome(b.release), c.acquire(blocking=False), type(a) is type(threading.Lock())

    return Setup(f, lambda: (t(3),), after=after)


@case(lambda: (t(3),))
def cached_property_of_made_class(x):
    class A:
        count = 0

        @functools.cached_property
        def v(self):
            self.count += 1
            return x * 2

    a = A()
    return a.v + a.v, a.count, a.v is a.v, a, "v" in vars(a)


LOCAL = threading.local()


@scenario(after_change=(1, 1))
def thread_local_read():
    LOCAL.v = 3

    def f(x):
        return x * LOCAL.v, hasattr(LOCAL, "none"), getattr(LOCAL, "other", 7)

    def change():
        LOCAL.v = 4

    def appear():
        LOCAL.other = 1

    def cleanup():
        LOCAL.__dict__.clear()

    return Setup(f, lambda: (t(3),), changes=[change, appear], cleanup=cleanup)


@scenario(captures=(1, 1))
def thread_local_written():
    def f(x):
        LOCAL.w = x + 1
        LOCAL.gone = 1
        del LOCAL.gone
        return LOCAL.w * 2, hasattr(LOCAL, "gone"), outcome(lambda: LOCAL.gone)

    return Setup(f, lambda: (t(3),), watch=lambda: sorted(LOCAL.__dict__), cleanup=LOCAL.__dict__.clear)


@scenario()
def thread_local_of_other_threads():
    def f(x):
        return x * getattr(LOCAL, "n", 1)

    def run(call):
        results = []
        thread = threading.Thread(target=lambda: results.append(call(t(3))))
        thread.start()
        thread.join()
        return results

    def g(x):
        return f(x)

    LOCAL.n = 5
    return Setup(g, lambda: (t(3),), after=lambda result: (run(f), LOCAL.n), cleanup=LOCAL.__dict__.clear)


@case(lambda: (t(3),))
def loggers(x):
    known = logging.getLogger("differ.known")
    return x + 1, known.name, logging.getLogger().name, logging.getLogger("root") is logging.root


logging.getLogger("differ.known")


@scenario()
def generator_of_its_own():
    numbers = random.Random(5)

    def f(x):
        return x * numbers.random()

    return Setup(f, lambda: (t(3),), watch=numbers.getstate)


@dataclasses.dataclass
class Row:
    a: int = 1
    b: typing.ClassVar[int] = 2


@case(lambda: (t(3),))
def annotations_of_a_class(x):
    return (
        x + 1,
        Row.__dict__["__annotations__"],
        vars(Row)["a"],
        inspect.get_annotations(Row),
        Row.__annotations__ is Row.__dict__["__annotations__"],
    )


test = cases.as_test(__name__)
