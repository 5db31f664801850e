"""What CPython's tests of containers, copy, math, random and text have found (make cpython-tests)."""

import collections
import copy
import functools
import itertools
import math
import operator
import random
import types
import weakref
from collections import OrderedDict, defaultdict, deque, namedtuple

import torch
from differ import Cases, Setup, t

cases = Cases()
case = cases.case
scenario = cases.scenario


class Exc(Exception):
    pass


class MoodyHash:
    fail = False

    def __hash__(self):
        if self.fail:
            raise Exc()
        return 42


class Counted:
    asked = 0

    def __hash__(self):
        self.asked += 1
        return 7


# ---- dicts -------------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="UserBreak", graphs=2)
def keys_are_hashed_once(x):
    moody = MoodyHash()
    d = {moody: 1}
    moody.fail = True
    y = x + 1
    torch._dynamo.graph_break()
    try:
        d[moody]
    except Exc:
        y = y * 2
    return y, list(d.values()), len(d)


@case(lambda: (t(3),))
def keys_with_effects(x):
    counted = Counted()
    d = {counted: x + 1}
    return d[counted] * 2, d, counted.asked


@scenario(captures=(1, 0))
def existing_dict_is_cleared():
    moody = MoodyHash()
    d = {"a": 1, moody: 2, "b": 3}
    inner = d.keys()

    def f(x):
        n = len(d)
        moody.fail = True
        d.clear()
        d["b"] = x + n
        return x * n

    def build():
        moody.fail = False
        d.clear()
        d.update({"a": 1, moody: 2, "b": 3})
        return (t(3),)

    return Setup(f, build, watch=lambda: (list(d), list(inner)))


class Leaves:
    log = []

    def __del__(self):
        self.log.append("gone")


@scenario(skip="*", captures=(None, None))
def overwritten_value_with_a_finaliser():
    d = {}

    def f(x):
        before = len(Leaves.log)
        d["a"] = None
        seen = len(Leaves.log) - before
        del d["b"]
        return x + seen, len(Leaves.log) - before

    def build():
        d.update(a=Leaves(), b=Leaves())
        return (t(3),)

    return Setup(f, build)


class Ordered(OrderedDict):
    pass


@case(lambda: (t(3),))
def ordered_dict_iterators_see_every_change(x):
    seen = []

    def outcome(change):
        od = OrderedDict.fromkeys("abc")
        it = iter(od)
        seen.append(next(it))
        change(od)
        for _ in range(2):
            try:
                seen.append(next(it, "end"))
            except RuntimeError as e:
                seen.append(str(e))
        seen.append(list(od))

    outcome(lambda od: od.move_to_end("a"))
    outcome(lambda od: od.update(b=1))
    outcome(lambda od: od.update(d=1))
    outcome(lambda od: od.pop("c"))
    od = OrderedDict(a=1)
    it = iter(od)
    seen.append(next(it))
    od["b"] = 2
    seen.append(next(it, "end"))
    it = reversed(OrderedDict.fromkeys("abc"))
    d = dict.fromkeys("abc")
    back = reversed(d)
    seen.append(next(back))
    d["d"] = 1
    try:
        next(back)
    except RuntimeError as e:
        seen.append(str(e))
    return x + 1, seen, list(it)


@case(lambda: (t(3),))
def copies_keep_their_class(x):
    od, plain = Ordered(b=1, a=2), defaultdict(int, a=1)
    od.extra = "kept by copy.copy"
    return x * 2, [type(od.copy()).__name__, od.copy(), plain.copy().default_factory, vars(copy.copy(od)), vars(od.copy())]


@scenario()
def copies_of_existing_default_dicts():
    d = defaultdict(list, {1: [2]})

    def f(x):
        return x + 1, d.copy(), copy.copy(d), copy.deepcopy(d)

    return Setup(f, lambda: (t(3),), after=lambda r: [c.default_factory for c in r[1:]])


@case(lambda: (t(3),), skip="MethodCall", graphs=2)
def methods_of_dict_on_an_ordered_dict(x):
    od = OrderedDict(spam=1, ham=2)
    y = x + 1
    dict.__delitem__(od, "spam")
    try:
        text = repr(od)
    except KeyError as e:
        text = f"KeyError {e}"
    return y * 2, text


@case(lambda: (t(3),))
def attributes_of_ordered_dicts(x):
    od = OrderedDict(w=x + 1)
    od._metadata = OrderedDict()
    od._metadata["a"] = dict(version=1)
    od.gone = 1
    del od.gone
    try:
        od.gone
    except AttributeError as e:
        text = str(e)
    return od, od._metadata, text, sorted(vars(od)), copy.copy(od)._metadata is od._metadata


@scenario()
def attributes_of_an_existing_ordered_dict():
    od = OrderedDict(a=1)
    od.version = 1

    def f(x):
        od.version += 1
        od.seen = x + od.version
        return od.seen * 2, hasattr(od, "other"), od.__dict__ is vars(od)

    def build():
        vars(od).clear()
        od.version = 1
        return (t(3),)

    return Setup(f, build, watch=lambda: vars(od))


@scenario(captures=(1, 0), after_change=(1,))
def members_that_change():
    one, two = Node(1), Node(2)
    held, keyed = {one}, {two: 3}

    def f(x):
        return x + sum(n.value for n in held) + sum(n.value * v for n, v in keyed.items())

    def change():
        one.value = two.value = 10

    return Setup(f, lambda: (t(3),), changes=[change])


# ---- namespaces --------------------------------------------------------------------------------------------------------


class Config(types.SimpleNamespace):
    def scaled(self, x):
        return x * self.scale


@case(lambda: (t(3),))
def namespaces_made_inside(x):
    n, c = types.SimpleNamespace(a=1, b=[2]), Config(scale=2)
    n.c = x + n.a
    del n.b
    try:
        types.SimpleNamespace(1)
    except TypeError as e:
        text = str(e)
    same = types.SimpleNamespace(a=1) == types.SimpleNamespace(a=1), types.SimpleNamespace(a=1) != 1, n == c
    return n.c * 2, c.scaled(x), n, c, vars(c), repr(types.SimpleNamespace(q="r")), repr(c), same, text, copy.copy(c), copy.deepcopy(c)


@scenario(captures=(1, 0), after_change=(1,))
def namespaces_that_exist():
    n = types.SimpleNamespace(scale=2.0, steps=0, last=None)

    def f(x):
        n.steps = 1
        n.last = x * n.scale
        return n.last + 1, hasattr(n, "other")

    return Setup(f, lambda: (t(3),), watch=lambda: vars(n), changes=[lambda: setattr(n, "scale", 3.5)])


# ---- deques and lists --------------------------------------------------------------------------------------------------


class Clears:
    def __init__(self, held):
        self.held = held

    def __eq__(self, other):
        self.held.clear()
        return False


@case(lambda: (t(3),))
def searches_see_changes(x):
    seen = []
    for search in (lambda d: 5 in d, lambda d: d.count(5), lambda d: d.index(5), lambda d: d.remove(5)):
        for made in (deque(range(4)), list(range(4))):
            made[2] = Clears(made)
            try:
                seen.append(search(made))
            except (RuntimeError, IndexError, ValueError) as e:
                seen.append(str(e))
    same = deque([1, Clears([]), 3])
    return x + 1, seen, 3 in same, deque("abc").index("c", -2)


@scenario()
def assignment_keeps_the_iterators_of_a_deque():
    d = deque(range(5))
    it = iter(d)

    def f(x):
        for i in range(len(d)):
            d[i] = i * 2
        return x + d[1]

    return Setup(f, lambda: (t(3),), after=lambda r: list(it))


class OwnItems(deque):
    def __getitem__(self, key):
        return f"{key}!"


@case(lambda: (t(3), OwnItems((1, 2))), skip="*")
def iterating_is_not_indexing(x, d):
    return x + next(iter(d)), list(d)


@case(lambda: (t(3),))
def a_list_that_grew_while_it_was_sorted(x):
    items = [1, 2]

    def compare(a, b):
        items.append(3)
        items.pop()
        return a - b

    try:
        items.sort(key=functools.cmp_to_key(compare))
    except ValueError as e:
        return x + 1, str(e), items


# ---- copy --------------------------------------------------------------------------------------------------------------


class Node:
    def __init__(self, value):
        self.value = value
        self.links = []


class OwnDeepcopy:
    def __init__(self, value):
        self.value = value
        self.me = [self]

    def __deepcopy__(self, memo):
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.value = copy.deepcopy(self.value, memo)
        made.me = copy.deepcopy(self.me, memo)
        return made


class SixParts:
    def __reduce__(self):
        return SixParts, (), None, None, None, None


class Uncopyable:
    def __getattribute__(self, name):
        if name.startswith("__reduce"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)


@case(lambda: (t(3),))
def deep_copies_share_what_was_shared(x):
    a, b = Node([x + 1]), Node({})
    a.links += [b, a]
    b.links += [a]
    c = copy.deepcopy([a, a.links, (b, b), OwnDeepcopy([a])])
    own = c[3]
    return x * 2, [c[0].links is c[1], c[1][0] is c[2][0], c[1][1] is c[0], own.me[0] is own, own.value[0] is c[0]], c[0].value


@case(lambda: ([[1], [2, [3]]], t(3)), captures=(1, 0))
def deep_copies_of_arguments(items, x):
    made = copy.deepcopy([items, items])
    return x + 1, made, made[0] is made[1], made[0] is not items


@case(lambda: (t(3),))
def a_memo_that_somebody_looks_at(x):
    memo = {}
    items = [(1, 2), [3]]
    made = copy.deepcopy(items, memo)
    y = x + 1
    return y, len(memo), memo[id(items)] is made, memo[id(memo)][0] is items[1], made


@case(lambda: (t(3),))
def what_cannot_be_copied(x):
    seen = []
    for function in (copy.copy, copy.deepcopy):
        for cls in (SixParts, Uncopyable):
            try:
                function(cls())
            except (copy.Error, TypeError) as e:
                seen.append((type(e).__name__, str(e)))
    return x + 1, seen


@case(lambda: (t(3),))
def copies_of_the_library(x):
    made = [{1, 2}, frozenset([1]), deque([x + 1], 3), OrderedDict(a=[1]), defaultdict(list, a=[1]), slice(1, [2]), collections.Counter("aab")]
    return x + 1, copy.deepcopy(made), [copy.copy(m) for m in made]


@case(lambda: (t(3),))
def a_long_deep_copy(x):
    items = [[i] for i in range(300)]
    return x + 1, copy.deepcopy(items)[-1], len(copy.deepcopy({i: items for i in range(3)}))


# ---- identity ----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="UserBreak", graphs=2)
def equal_texts_stay_two_objects(x):
    a = b = "xyzpdq"
    c = a[:3] + b[3:]
    pair = (c, "xyz")
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2, a is b, a is c, operator.is_not(a, c), pair[0] is c


@case(lambda: (t(3),), skip="UserBreak", graphs=2)
def fresh_objects_have_one_address(x):
    o = object()
    before = repr(o), f"{o}", [o], id(o)
    text = repr([o])
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2, before[0] == repr(o), before[1] == str(o), before[3] == id(o), text == repr([o])


@case(lambda: (t(3),))
def classes_of_library_objects(x):
    a, b = itertools.tee("ab")
    groups = itertools.groupby("aab")
    getter = operator.itemgetter(0)
    return (
        x + 1,
        [type(a).__name__, type(groups) is itertools.groupby, isinstance(groups, itertools.groupby), type(getter), isinstance(getter, type(a))],
        list(b),
    )


@case(lambda: (t(3),), skip="UnsupportedDescriptor", graphs=2)
def documented_fields(x):
    Point = namedtuple("Point", "x y")
    y = x + 1
    Point.x.__doc__ = "the first"
    return y * 2, Point.x.__doc__, Point(1, 2)


class Linked:
    def __init__(self):
        self.link = Node(1)
        self.weak = weakref.proxy(self.link)


@case(lambda: (t(3),), skip="*")
def what_a_dead_local_holds_lives_on(x):
    holder = Linked()
    weak = holder.weak
    y = x + 1
    return y, weak.value, weak.links


@case(lambda: (t(3),), skip="UserBreak", graphs=2)
def named_tuples_of_sets(x):
    fields, more = {"a", "b", "c"}, ["d", "e"]
    Made, Other = namedtuple("Made", fields), namedtuple("Other", more)
    more.append("f")
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2, sorted(Made._fields), Other(1, 2), more


@scenario(skip="*")
def members_of_existing_sets_keep_their_identity():
    held = frozenset([object(), object()])

    def f(x):
        items = list(held)
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2, [i in held for i in items], sorted(map(hash, items)) == sorted(map(hash, held))

    return Setup(f, lambda: (t(3),))


# ---- text --------------------------------------------------------------------------------------------------------------


class Shows:
    def __init__(self, value=None):
        self.value = value

    def __repr__(self):
        return f"<{self.value!r}>"


@case(lambda: (t(3),), skip="*")
def texts_inside_of_themselves(x):
    a = Shows()
    a.value = frozenset([a])
    b = Shows()
    b.value = [b]
    return x + 1, repr(a.value), repr(b.value), repr(b)


# ---- numbers -----------------------------------------------------------------------------------------------------------


class OwnRounding(float):
    def __floor__(self):
        return "floor"

    def __ceil__(self):
        return "ceil"

    def __trunc__(self):
        return "trunc"


class Converts:
    asked = False

    def __float__(self):
        self.asked = True
        return 1.0


class BadIndex:
    def __index__(self):
        return "no"


@case(lambda: (t(3),))
def rounding_of_subclasses(x):
    v = OwnRounding(1.5)
    return x + 1, [math.floor(v), math.ceil(v), math.trunc(v)], math.floor(Converts())


@case(lambda: (t(3),))
def indices_that_are_none(x):
    seen = [operator.index(True), operator.index(7)]
    try:
        operator.index(BadIndex())
    except TypeError as e:
        seen.append(str(e))
    return x + 1, seen


@case(lambda: (t(3),), skip="*")
def numbers_are_refused_in_order(x):
    y = Converts()
    try:
        math.atan2("no", y)
    except TypeError as e:
        return x + 1, str(e), y.asked


@scenario(skip="RandomCall", graphs=2)
def a_generator_with_another_source():
    g = random.Random(3)
    values = [0.25, 0.5, 0.75]

    def f(x):
        y = x + 1
        g.random = iter(values).__next__
        return y * 2, g.uniform(0.0, 8.0), g.uniform(0.0, 8.0)

    return Setup(f, lambda: (t(3),), cleanup=lambda: vars(g).pop("random", None))


test = cases.as_test(__name__)
