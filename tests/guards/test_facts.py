"""Each kind of fact: it passes, it misses, and it says why."""

import abc
import collections
import weakref

import pytest

L0, L1 = ("local", 0), ("local", 1)


@pytest.fixture
def guards(C):
    def make(*facts, wanted=(), names=("x", "y"), globals=None):
        return C._TestGuards(list(facts), wanted, names, globals)

    return make


def passes(g, *locals, function=None):
    first = g.check(locals, function)
    assert first is not None, g.explain(locals, function)
    assert g.explain(locals, function) == ""
    assert g.check(locals, function) == first
    return True


def misses(g, *locals, function=None):
    assert g.check(locals, function) is None
    text = g.explain(locals, function)
    assert text
    return text


def test_type(guards):
    g = guards(("type", L0, int))
    assert passes(g, 3)
    assert passes(g, 4)
    text = misses(g, True)
    assert text.startswith("___check_type_id(L['x'], ")
    assert "type=<class 'int'>" in text and "actual: <class 'bool'>" in text


def test_identity(guards):
    marker = object()
    g = guards(("is", L0, marker))
    assert passes(g, marker)
    assert "___check_obj_id(L['x']" in misses(g, object())
    g = guards(("is", L0, None))
    assert misses(g, 3) == "L['x'] is None  # actual: 3"
    g = guards(("is_not", L0, None))
    assert passes(g, 3)
    assert misses(g, None) == "L['x'] is not None"


class Thing:
    pass


def test_identity_is_weak(guards):
    thing = Thing()
    alive = weakref.ref(thing)
    g = guards(("is", L0, thing))
    assert passes(g, thing)
    del thing
    assert alive() is None
    assert misses(g, None)
    for _ in range(100):
        assert misses(g, Thing())


NAN = float("nan")


@pytest.mark.parametrize(
    "constant, same, different",
    [
        (3, [3], [4, 3.0, True, "3"]),
        (10**30, [10**30], [10**30 + 1]),
        (True, [True], [1, False, 1.0]),
        (0.0, [0.0], [-0.0, 0, False]),
        (NAN, [NAN, float("nan")], [0.0]),
        ("abc", ["".join("abc")], ["abd", b"abc"]),
        (b"ab", [b"ab"], ["ab"]),
        (1 + 0j, [complex(1, 0)], [complex(1, -0.0), 1]),
        ((1, (2.0, "x")), [(1, (2.0, "x"))], [(1, (2, "x")), (True, (2.0, "x")), (1,), [1, (2.0, "x")]]),
        (frozenset([1, "a"]), [frozenset(["a", 1])], [frozenset([True, "a"]), frozenset([1]), {1, "a"}]),
        (range(0, 3, 2), [range(0, 3, 2)], [range(0, 4, 2), range(3)]),
        (slice(1, None), [slice(1, None)], [slice(True, None), slice(1, 2)]),
        (None, [None], [0, False]),
        (..., [...], [None]),
    ],
)
def test_equals(guards, constant, same, different):
    for source, wrap in ((L0, lambda v: v), (("seq", L0, 0), lambda v: [v]), (("item", L0, "k"), lambda v: {"k": v})):
        g = guards(("equals", source, constant))
        for value in same:
            if value is not ...:  # an unbound local, to the test type
                assert passes(g, wrap(value))
        for value in different:
            assert "==" in misses(g, wrap(value))


def test_equals_text(guards):
    g = guards(("equals", ("local", 0), 3), names=("n",))
    assert misses(g, 4) == "L['n'] == 3  # actual: 4"


@pytest.mark.parametrize(
    "value", [[1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, frozenset([1, 2]), collections.deque([1, 2]), collections.OrderedDict(a=1, b=2)]
)
def test_length(guards, value):
    g = guards(("len", L0, 2))
    assert passes(g, value)
    assert misses(g, type(value)()) == "len(L['x']) == 2  # actual: 0"
    assert misses(g, 5)
    g = guards(("type", L0, type(value)), ("len", L0, 2))
    assert passes(g, value)
    assert misses(g, type(value)()) == "len(L['x']) == 2  # actual: 0"


def test_dict_facts(guards):
    g = guards(("lacks", L0, "k"), ("len", L0, 1))
    d = {"a": 1}
    assert passes(g, d)
    d["k"] = 2
    del d["a"]
    assert misses(g, d) == "not ___dict_contains('k', L['x'])"
    assert passes(g, {"b": 1})
    assert misses(g, [1])
    g = guards(("keys", L0, ("a", "b")))
    assert passes(g, {"a": 1, "b": 2})
    assert passes(g, {"a": 5, "b": 2})
    text = misses(g, {"b": 1, "a": 2})
    assert text == "list(dict.keys(L['x'])) == ['a', 'b']  # actual: ['b', 'a']"
    assert misses(g, {"a": 1})
    assert misses(g, {"a": 1, "b": 2, "c": 3})


@pytest.mark.parametrize("typed", [False, True])
def test_ordered_dict_order(guards, typed):
    facts = [("keys", L0, ("a", "b"))]
    if typed:
        facts.insert(0, ("type", L0, collections.OrderedDict))
    g = guards(*facts)
    od = collections.OrderedDict(a=1, b=2)
    assert passes(g, od)
    od.move_to_end("a")
    assert misses(g, od)
    od.move_to_end("b")
    assert passes(g, od)


def test_set(guards):
    g = guards(("set", L0, frozenset([1, "a"])))
    assert passes(g, {"a", 1})
    assert misses(g, {"a", True})
    assert misses(g, {"a"})
    assert misses(g, {"a", 2})
    assert misses(g, ["a", 1])


def test_function_facts(guards):
    def f(a, b=1, *, c=2):
        return a

    g = guards(("function", L0, f))
    assert passes(g, f)
    clone = type(f)(f.__code__, f.__globals__, "g", (7,))
    assert misses(g, clone).endswith("__kwdefaults__ is not None")
    clone.__kwdefaults__ = {"c": 3}
    assert passes(g, clone)  # the values have facts of their own, where they were looked at
    clone.__defaults__ = None
    assert misses(g, clone).endswith("__defaults__ is not None")
    assert "___check_code" in misses(g, len)
    assert "___check_code" in misses(g, test_set)


def test_lookup(guards):
    class Base:
        def m(self):
            return 1

    class Sub(Base):
        pass

    g = guards(("lookup", Sub, "m", Base.m), ("lookup", Sub, "n"))
    assert passes(g)
    Base.k = 3
    assert passes(g)
    original = Base.m
    Base.m = lambda self: 2
    assert "has the same 'm'" in misses(g)
    Base.m = original
    assert passes(g)
    Base.n = 3
    assert misses(g).startswith("not hasattr(")
    del Base.n
    assert passes(g)
    Sub.m = original
    assert passes(g)
    Sub.__bases__ = (Thing,)
    assert passes(g)
    del Sub.m
    assert misses(g)


def test_same_and_distinct(guards):
    g = guards(("same", L0, L1))
    a, b = [], []
    assert passes(g, a, a)
    assert misses(g, a, b) == "L['x'] is L['y']"
    g = guards(("distinct", L0, ("seq", L1, 0)))
    assert passes(g, a, [b])
    assert misses(g, a, [a]) == "L['x'] is not L['y'][0]"


def test_slots(guards):
    class Slotted:
        __slots__ = ("a", "b")

        def __getattr__(self, name):
            raise RuntimeError("Python code must not run here")

    s = Slotted()
    s.a = 1
    g = guards(("lacks_attr", L0, "b"), ("equals", ("attr", L0, "a"), 1))
    assert passes(g, s)
    s.b = 2
    assert g.check((s,)) is None
    del s.b
    s.a = 3
    assert misses(g, s) == "L['x'].a == 1  # actual: 3"
    del s.a
    assert g.check((s,)) is None


def test_attr_of_c_descriptor(guards):
    g = guards(("equals", ("attr", L0, "real"), 3), wanted=(("attr", L0, "imag"),))
    assert g.check((3,)) == (0,)
    assert misses(g, 4)
    assert misses(g, "text") == "hasattr(L['x'], 'real')"


def test_abc(guards):
    class Abstract(abc.ABC):  # noqa: B024
        pass

    g = guards(("abc",))
    assert passes(g)
    Abstract.register(Thing)
    assert misses(g).startswith("abc.get_cache_token() == ")


def test_truth(guards):
    g = guards(("truth", L0, True))
    for value in (1, 5, "a", 0.5, True, b"x", (1,)):
        assert passes(g, value)
    for value in (0, "", 0.0, False, None, ()):
        assert misses(g, value).startswith("bool(L['x'])")
    assert misses(g, Thing())
    g = guards(("truth", L0, False))
    assert passes(g, 0)
    assert misses(g, 7) == "not L['x']  # actual: 7"


def test_deque_and_weak_sources(guards):
    g = guards(("equals", ("deque", L0, 1), 2))
    assert passes(g, collections.deque([1, 2]))
    assert misses(g, collections.deque([1])) == "len(L['x']) > 1"
    thing = Thing()
    ref = weakref.ref(thing)
    g = guards(("type", ("weak", L0), Thing), wanted=(("weak", L0),))
    assert g.check((ref,)) == (thing,)
    del thing
    assert ref() is None
    assert misses(g, ref)


def test_unbound_and_missing(guards):
    g = guards(("type", L0, int))
    assert misses(g, ...) == "L['x'] is bound"
    assert misses(g)
    g = guards(("type", ("item", ("item", L0, "a"), "b"), int))
    assert passes(g, {"a": {"b": 1}})
    assert misses(g, {"a": {}}) == "___dict_contains('b', L['x']['a'])"
    assert misses(g, {}) == "___dict_contains('a', L['x'])"
    assert misses(g, {"a": 5})


def test_closure(guards):
    a, b = 1, [2]

    def f():
        return a, b  # noqa: F821

    g = guards(("equals", ("contents", ("cell", 0)), 1), ("equals", ("seq", ("contents", ("cell", 1)), 0), 2))
    assert passes(g, function=f)
    b[0] = 3
    assert misses(g, function=f) == "F.__closure__[1].cell_contents[0] == 2  # actual: 3"
    b.clear()
    assert misses(g, function=f) == "len(F.__closure__[1].cell_contents) > 0"
    assert misses(g, function=None)
    assert misses(g, function=test_closure)
    b.append(2)
    a = 2
    assert misses(g, function=f)
    del a
    assert misses(g, function=f)


def test_describe(guards):
    scope = {"w": 1}
    g = guards(
        ("type", L0, int),
        ("equals", L0, 3),
        ("is", ("item", ("pinned", scope), "w"), None),
        ("lacks", L1, "k"),
        ("equals", ("item", L1, "q"), 4),
        globals=scope,
    )
    lines = g.describe()
    assert lines[0].startswith("GLOBAL_STATE: ")
    assert "EQUALS_MATCH: L['x'] == 3" in lines
    assert "ID_MATCH: G['w'] is None" in lines
    assert "DICT_NOT_CONTAINS: not ___dict_contains('k', L['y'])" in lines
    assert "DICT_CONTAINS: ___dict_contains('q', L['y'])" in lines
    assert any(line.startswith("TYPE_MATCH: ___check_type_id(L['x'], ") for line in lines)
    assert len(g) == 5
