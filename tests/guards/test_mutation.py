"""What was captured changes afterwards: the guard sees it, and touches no dead object."""

import collections
import gc
import random
import sys
import weakref

import pytest

L0 = ("local", 0)


@pytest.fixture
def guards(C):
    def make(*facts, wanted=(), names=("x", "y")):
        return C._TestGuards(list(facts), wanted, names)

    return make


class Node:
    def __init__(self, **fields):
        self.__dict__.update(fields)


def fields(base):
    return ("dict", base)


def test_instance_field_changes(guards):
    g = guards(("type", L0, Node), ("equals", ("item", fields(L0), "n"), 1), wanted=(("item", fields(L0), "n"),))
    node = Node(n=1)
    assert g.check((node,)) == (1,)
    node.other = 5
    assert g.check((node,)) == (1,)
    node.n = 2
    assert g.check((node,)) is None
    assert g.explain((node,)) == "L['x'].n == 1  # actual: 2"
    node.n = 1
    assert g.check((node,)) == (1,)
    node.__dict__ = {"n": 3}
    assert g.check((node,)) is None
    node.__dict__ = {"n": 1}
    assert g.check((node,)) == (1,)
    del node.n
    assert g.check((node,)) is None
    assert g.check((Node(n=1),)) == (1,)


def test_class_assigned(guards):
    class Other(Node):
        pass

    g = guards(("type", ("item", L0, "k"), Node))
    d = {"k": Node()}
    assert g.check((d,)) == ()
    d["k"].__class__ = Other
    assert g.check((d,)) is None


def test_inline_values(guards):
    class Plain:
        def __init__(self, v):
            self.v = v

    g = guards(("type", L0, Plain), ("equals", ("item", fields(L0), "v"), 1))
    assert g.check((Plain(1),)) == ()
    assert g.check((Plain(2),)) is None
    p = Plain(1)
    for _ in range(3):
        assert g.check((p,)) == ()
    p.v = 2
    assert g.check((p,)) is None


def test_global_changes(guards):
    scope = {"flag": 1, "other": 0}
    g = guards(("equals", ("item", ("pinned", scope), "flag"), 1))
    for i in range(10):
        scope["other"] = i
        assert g.check(()) == ()
    scope["flag"] = 2
    assert g.check(()) is None
    del scope["flag"]
    assert g.check(()) is None


def test_list_shortened(guards):
    items = [Node(n=i) for i in range(5)]
    g = guards(("equals", ("item", fields(("seq", L0, 4)), "n"), 4))
    assert g.check((items,)) == ()
    items.pop()
    gc.collect()
    assert g.check((items,)) is None
    items.append(Node(n=4))
    assert g.check((items,)) == ()


def test_dict_replaced_by_something_else(guards):
    """A register that was a dict is now another kind of object, perhaps at the same address."""
    source = ("item", ("item", ("item", L0, "a"), "b"), "c")
    g = guards(("equals", source, 1))
    d = {"a": {"b": {"c": 1}}}
    assert g.check((d,)) == ()
    for other in (None, 1, "s", [], object(), {"b": 3}, {"b": {"c": 2}}, {"b": {}}):
        d["a"] = other
        assert g.check((d,)) is None
        assert g.check((other,)) is None
        d["a"] = {"b": {"c": 1}}
        assert g.check((d,)) == ()


def test_random_mutations_against_a_plain_reading(guards):
    """The cached path and explain(), which caches nothing, must always agree."""
    rng = random.Random(0)
    a, b = ("item", fields(L0), "a"), ("item", fields(L0), "b")
    g = guards(
        ("type", L0, Node),
        ("type", a, Node),
        ("equals", ("item", fields(a), "v"), 1),
        ("len", b, 2),
        ("type", b, dict),
        ("keys", b, ("p", "q")),
        ("equals", ("item", b, "p"), 0),
        ("type", ("item", b, "q"), Node),
        ("lacks", fields(a), "w"),
        ("equals", ("item", fields(("item", b, "q")), "v"), 1),
    )

    def good():
        return Node(a=Node(v=1), b={"p": 0, "q": Node(v=1)})

    root = good()
    hits = 0
    for _ in range(20000):
        choice = rng.randrange(16)
        try:
            if choice == 0:
                root = good()
            elif choice == 1:
                root.a = Node(v=rng.randrange(3))
            elif choice == 2:
                root.a.v = rng.randrange(2)
            elif choice == 3:
                root.b["p"] = rng.randrange(2)
            elif choice == 4:
                root.b = {"p": 0, "q": rng.choice([Node(v=1), 3])}
            elif choice == 5:
                root.b["r"] = 1
            elif choice == 6:
                root.b.pop("r", None)
            elif choice == 7:
                root.a.__dict__ = {"v": 1}
            elif choice == 8:
                root.a.w = 1
            elif choice == 9:
                root.a.__dict__.pop("w", None)
            elif choice == 10:
                root.b["q"].v = rng.randrange(2)
            elif choice == 11:
                root.noise = rng.random()
            elif choice == 12:
                root.b = dict(reversed(list(root.b.items())))
            elif choice == 13:
                root.__dict__ = dict(root.__dict__)
            elif choice == 14 and rng.random() < 0.2:
                root.a = rng.choice([None, 3, []])
        except AttributeError:
            root = good()
        held = g.check((root,)) is not None
        assert held == (g.explain((root,)) == "")
        hits += held
        if not held and rng.random() < 0.3:
            root = good()
    assert hits > 2000


def test_user_data_dies(guards):
    class Model:
        pass

    model, part = Model(), Model()
    model.part = part
    refs = [weakref.ref(model), weakref.ref(part)]
    scope = {"model": model}
    source = ("item", ("pinned", scope), "model")
    g = guards(
        ("is", source, model),
        ("is", ("item", fields(source), "part"), part),
        ("type", L0, int),
        ("lookup", Model, "x"),
        wanted=(("item", fields(source), "part"),),
    )
    assert g.check((1,)) == (part,)
    del model, part
    scope.clear()
    gc.collect()
    assert [r() for r in refs] == [None, None]
    assert g.check((1,)) is None
    scope["model"] = Model()
    assert g.check((1,)) is None


def test_no_leak(guards):
    node = Node(n=1, inner={"k": [1]})
    g = guards(
        ("type", L0, Node),
        ("equals", ("seq", ("item", ("item", fields(L0), "inner"), "k"), 0), 1),
        ("equals", ("attr", ("item", fields(L0), "n"), "real"), 1),
        wanted=(("item", fields(L0), "inner"),),
    )
    counts = [sys.getrefcount(node), sys.getrefcount(node.inner), sys.getrefcount(1000003)]
    for i in range(10000):
        g.check((node,))
        if i % 100 == 0:
            node.n = node.n
            node.other = i
            g.explain((node,))
            g.check((5,))
    assert counts == [sys.getrefcount(node), sys.getrefcount(node.inner), sys.getrefcount(1000003)]


class Nasty:
    """A key whose comparison runs Python code that pulls the rug."""

    def __init__(self, key, action):
        self.key, self.action = key, action

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        self.action()
        return False


def test_python_code_during_a_lookup(guards):
    """An __eq__ frees everything that was read before; the values are held meanwhile."""
    for key in ("k", 7, (1, 2)):
        victim = [[Node(n=1)], {}]
        table = {}

        def pull(victim=victim):
            victim[0] = None
            victim[1] = None
            gc.collect()

        table[Nasty(key, pull)] = 0
        table[key] = 1
        victim[0], victim[1] = [Node(n=1)], {"t": table}
        g = guards(
            ("equals", ("item", ("item", ("seq", L0, 1), "t"), key), 1),
            ("type", ("seq", ("seq", L0, 0), 0), Node),
            ("equals", ("item", fields(("seq", ("seq", L0, 0), 0)), "n"), 1),
            wanted=(("seq", ("seq", L0, 0), 0), ("item", ("seq", L0, 1), "t")),
        )
        for _ in range(3):
            victim[0], victim[1] = [Node(n=1)], {"t": table}
            g.check((victim,))


def test_reentrant_check(guards):
    table = {}
    state = {"depth": 0, "answers": []}

    def again():
        if state["depth"] < 3:
            state["depth"] += 1
            state["answers"].append(g.check((table,)))
            state["depth"] -= 1

    g = guards(("equals", ("item", L0, 7), 1), wanted=(("item", L0, 8),))
    table[Nasty(7, again)] = 0
    table[7], table[8] = 1, "eight"
    state["answers"].clear()
    assert g.check((table,)) == ("eight",)
    assert state["answers"] and all(a == ("eight",) for a in state["answers"])


def test_ordered_dict_subclass_and_defaultdict(guards):
    made = []
    d = collections.defaultdict(lambda: made.append(1))
    g = guards(("equals", ("item", L0, "k"), 1))
    assert g.check((d,)) is None
    d["k"] = 1
    assert g.check((d,)) == ()
    assert not made
