"""Found by CPython's own tests, sixth sitting: warnings of C code, stand-ins, replaced builtins, setters of C types."""

import builtins
import collections
import functools
import itertools
import operator
import re
import threading
import types
import warnings
import weakref

from differ import Cases, Setup, outcome, t

cases = Cases()
case = cases.case
scenario = cases.scenario


# ---- warnings --------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="Output")
def the_compiler_warns(x):
    return x + 1, eval("'\\d'"), eval("1 is 1")


@case(lambda: (t(3),), skip="Output")
def the_compilers_warning_is_an_error(x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = outcome(lambda: eval("'\\d'")), outcome(lambda: compile("assert (1, 'a')", "x", "exec"))
    return x + 1, [(kind, str(text).splitlines()[0]) for kind, text in found]


@case(lambda: (t(3),))
def the_compiler_raises_without_a_warning(x):
    return x + 1, outcome(lambda: compile("1 +", "x", "eval"))[0], outcome(lambda: eval("(")), eval("1 + 1")


@case(lambda: (t(3),), skip="Output")
def a_codec_warns(x):
    return x + 1, b"\\d".decode("unicode_escape")


@case(lambda: (t(3),), skip="Output")
def the_truth_of_not_implemented(x):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        answer = bool(NotImplemented)
    return x + 1, answer, [str(w.message)[:20] for w in seen]


@scenario(skip="Output")
def no_registry_is_left_behind():
    space = {"__name__": "somewhere", "t": t}
    exec("def f(x):\n    a = '__warningregistry__' in globals()\n    return x + 1, a, b'\\\\d'.decode('unicode_escape')\n", space)
    return Setup(space["f"], lambda: (t(3),), watch=lambda: "__warningregistry__" in globals())


# ---- builtins that the program replaces ------------------------------------------------------------------------------


@scenario(skip="*")
def a_replaced_len():
    calls = []

    def f(x):
        old = builtins.len
        try:
            builtins.len = functools.lru_cache(4)(len)
            found = [len("abcdef"[:i]) for i in (0, 1, 1, 3)], outcome(lambda: len({}))
            calls.append(outcome(lambda: len([])))
        finally:
            builtins.len = old
        return x + 1, found, len is old

    return Setup(f, lambda: (t(3),), watch=lambda: list(calls))


# ---- stand-ins -------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def byte_arrays_inside_c_code(x):
    b = bytearray(b"bc")
    return (
        x + len(b),
        b in b"abcd",
        bytearray() in b"",
        b in (b"x", b"bc"),
        b"abcd".find(b),
        b"abcd".startswith(b),
        b"-".join([b, b]),
        b"a-bc".replace(b, b""),
        outcome(lambda: sum([], b)),
        outcome(lambda: sum([b"a"], start=b)),
        outcome(lambda: b in "abc"),
        int(bytearray(b"12")),
        int.from_bytes(b, "big"),
    )


class Index:
    def __index__(self):
        return 98


@case(lambda: (t(3),))
def objects_looked_for_in_bytes(x):
    return x + 1, Index() in b"abc", outcome(lambda: Index in b"abc"), outcome(lambda: Index() in "abc"), outcome(lambda: types in b"abc")


@case(lambda: (t(3),))
def attributes_of_stand_ins(x):
    b, m, lock = bytearray(b"a"), types.MappingProxyType({"a": 1}), threading.Lock()
    found = [hasattr(b, name) for name in ("_data", "stands_for", "__dict__", "__copy__", "append", "__made_by__")]
    found += [hasattr(m, name) for name in ("_mapping", "__dict__", "keys", "__made_of__")]
    found += [outcome(lambda: b._data), outcome(lambda: m._mapping), outcome(lambda: lock._count), outcome(lambda: lock.nothing)]
    return x + 1, found, getattr(b, "_data", 5), b.__doc__[:9], m.__doc__, b.__hash__, outcome(lambda: vars(m))


@case(lambda: (t(3),))
def names_of_stand_ins(x):
    return x + 1, dir(types.MappingProxyType({})), dir(bytearray()), "_count" in dir(threading.Lock())


@case(lambda: (t(3),))
def messages_about_stand_ins(x):
    m, lock = types.MappingProxyType({"a": 1}), threading.Lock()
    return x + 1, [outcome(one) for one in (lambda: m < m, lambda: m >= 1, lambda: len(lock), lambda: lock(), lambda: lock < lock, lambda: hash(m))]


@case(lambda: (t(3),), skip="*")
def stand_ins_asked_for_more(x):
    b, m, lock = bytearray(b"abc"), types.MappingProxyType({"a": 1}), threading.Lock()
    found = [
        bytearray.maketrans(b"a", b"b")[97],
        b.maketrans(b"a", b"c")[97],
        outcome(lambda: setattr(b, "x", 1)),
        outcome(lambda: object.__setattr__(m, "x", 1)),
        outcome(lambda: weakref.ref(b)),
        outcome(lambda: types.MappingProxyType()),
        outcome(lambda: lock.acquire(1, 2, 3)),
        outcome(lambda: lock.acquire(False, 1)),
        outcome(lambda: lock.acquire(True, -2)),
        outcome(lambda: threading.RLock().acquire(timeout=-2)),
        lock.acquire(timeout=3),
        lock.acquire(False),
        lock.locked(),
        super(bytearray, b).__len__ is None if hasattr(super(bytearray, b), "__len__") else None,
        operator.length_hint(iter(b)),
        type(b.__reduce_ex__(2)),
    ]
    return x + 1, found, b


@case(lambda: (t(3),))
def byte_iterators_know_their_length(x):
    it = iter(bytearray(b"abc"))
    next(it)
    return x + 1, operator.length_hint(it), list(it), operator.length_hint(it)


@case(lambda: (t(3),), skip="*")
def callables_of_operator_refuse(x):
    return x + 1, outcome(lambda: operator.methodcaller(1)), outcome(lambda: operator.methodcaller()), outcome(lambda: operator.itemgetter(1)())


@case(lambda: (t(3),))
def mappings_that_c_code_reads(x):
    m = types.MappingProxyType({"a": 1, "b": 2})
    return x + 1, "{a}".format_map(m), "%(a)s" % m, dict(m), {**m}, collections.ChainMap(m)["a"], "ab".translate({97: "x"}), m | {"c": 3}


@case(lambda: (t(3),), skip="UnsupportedAttribute")
def proxies_that_c_code_makes(x):
    named, plain = re.compile("(?P<a>b)").groupindex, re.compile("a").groupindex
    return x + 1, plain == {}, {} == plain, plain != {}, named == {"a": 1}, named == {}, plain == re.compile("b").groupindex


@scenario()
def a_proxy_that_exists():
    held = {"a": 1}
    proxy = types.MappingProxyType(held)

    def f(x):
        return x + 1, proxy == {"a": 1}, {"a": 1} != proxy, proxy == proxy, proxy == 3

    return Setup(f, lambda: (t(3),), changes=[lambda: held.update(a=2)])


@case(lambda: (t(3),), skip="*")
def matches_read_the_array(x):
    array = bytearray(b"abcdefgh")
    match = re.search(b"[a-h]+", array)
    before = match.group()
    array[:] = b"xyz"
    return x + 1, before, match.group(), match.group(0) == b"xyz"


@case(lambda: (t(3),), skip="Output")
def patterns_that_show_themselves(x):
    return x + 1, re.compile("ab", re.DEBUG).pattern


# ---- setters of C types ----------------------------------------------------------------------------------------------


class SetsByObject(type):
    def __setattr__(cls, key, value):
        object.__setattr__(cls, key, value)


class DeletesByObject(type):
    def __delattr__(cls, key):
        object.__delattr__(cls, key)


class Mixed:
    pass


class MixedMeta(Mixed, SetsByObject):
    pass


class OwnSetter:
    def __setattr__(self, key, value):
        object.__setattr__(self, key + "_", value)


@case(lambda: (t(3),))
def setters_must_not_pass_over_c_types(x):
    made = [meta("Made", (object,), {"here": 1}) for meta in (SetsByObject, MixedMeta, DeletesByObject)]

    def set_it(cls):
        cls.test = True

    def delete_it(cls):
        del cls.here

    own = OwnSetter()
    own.a = 1
    return x + own.a_, [outcome(lambda cls=cls: set_it(cls)) for cls in made[:2]], outcome(lambda: delete_it(made[2]))


# ---- texts -----------------------------------------------------------------------------------------------------------


class Text(str):
    pass


class Shown:
    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


@case(lambda: (t(3),))
def ascii_keeps_the_class_of_what_repr_gives(x):
    return x + 1, type(ascii(Shown(Text("abc")))) is Text, type(ascii(Shown(Text("\xe4")))), ascii(Shown(Text("\xe4"))), ascii("\xe4")


# ---- modules and thread locals ---------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="*")
def texts_of_modules_that_change(x):
    made = types.ModuleType("foo")
    made.__file__ = "/tmp/foo.py"
    first = repr(made)
    made.__name__ = "bar"
    return x + 1, first, f"{made}", str(made), outcome(lambda: made.nothing)


@case(lambda: (t(3),), skip="*")
def modules_without_a_name(x):
    return x + 1, outcome(lambda: types.ModuleType.__new__(types.ModuleType).nothing)


@scenario(skip="AttributeWrite")
def the_dict_of_a_thread_local():
    local = threading.local()

    def f(x):
        local.a = 1
        return x + local.a, outcome(lambda: setattr(local, "__dict__", {})), local.__dict__

    return Setup(f, lambda: (t(3),))


# ---- texts of what holds itself, which must not take for ever --------------------------------------------------------


@scenario()
def rings_in_guards():
    nodes = [[None, None, i] for i in range(40)]
    for i, node in enumerate(nodes):
        node[0], node[1] = nodes[i - 1], nodes[(i + 1) % len(nodes)]
    held = {"ring": nodes[0]}

    def f(x):
        return x + held["ring"][1][1][2]

    return Setup(f, lambda: (t(3),), changes=[lambda: held.update(ring=nodes[5])])


@case(lambda: (t(3), list(range(3000))))
def many_comparisons(x, numbers):
    return x + sum(1 for a in numbers if a >= 0), list(itertools.islice(numbers, 3))


test = cases.as_test(__name__)
