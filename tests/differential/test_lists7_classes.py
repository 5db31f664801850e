"""Attributes of classes that exist: counters, caches and singletons that the program keeps there; functions' own names."""

import functools
import weakref

import torch
from differ import Cases, Setup, outcome, t
from torch import nn

cases = Cases()
case, scenario = cases.case, cases.scenario


def counter_class():
    class Counter:
        n = 0
        cache = None

        def hit(self):
            Counter.n += 1
            return Counter.n

        @classmethod
        def make(cls):
            cls.n = cls.n + 1
            if cls.cache is None:
                cls.cache = {"k": cls.n}
            return cls.cache

    class Below(Counter):
        pass

    return Counter, Below


@scenario(captures=(1, 1), after_change=(0, 0))
def counter_on_the_class():
    Counter, Below = counter_class()

    def f(x):
        c = Counter()
        first, second = c.hit(), Counter().hit()
        return x * Counter.n, first, second, c.n, Below.n

    return Setup(f, lambda: (t(3),), watch=lambda: Counter.n, changes=[lambda: None, lambda: setattr(Counter, "n", 50)])


@scenario(captures=(1, 1), after_change=(0,))
def cache_set_by_a_class_method():
    Counter, Below = counter_class()

    def f(x):
        d = Below.make()
        return x + d["k"], Below.cache is d, Counter.cache, Below.n, Counter.n, "n" in Below.__dict__, vars(Below)["n"]

    return Setup(f, lambda: (t(3),), watch=lambda: (Below.__dict__.get("n"), Below.__dict__.get("cache")), changes=[lambda: None])


@scenario(captures=(1, 1), after_change=(0, 0))
def tensor_and_number_kept_on_a_module_class():
    class Last(nn.Module):
        last = None
        total = 0.0

        def forward(self, x):
            y = x * 2
            if Last.last is not None:
                y = y + Last.last
            Last.last = y
            type(self).total += 1.5
            return y * self.total

    return Setup(Last(), lambda: (t(3),), watch=lambda: (Last.last, Last.total), changes=[lambda: None, lambda: None])


@scenario(captures=(1, 1))
def singleton_made_by_new():
    class Single:
        held = None

        def __new__(cls, *args):
            if cls.held is None:
                cls.held = super().__new__(cls)
                cls.held.n = 0
            return cls.held

        def __init__(self, *args):
            self.n += 1

    return Setup(lambda x: (x * Single(1).n, Single() is Single()), lambda: (t(3),), watch=lambda: Single.held.n)


@scenario(after_change=(1, 0, 0))
def number_on_a_class_that_others_change():
    class Settings:
        scale = 1

    class Below(Settings):
        pass

    def change(n):
        Settings.scale = n

    return Setup(lambda x: (x * Settings.scale, Below().scale + 1), lambda: (t(3),), changes=[lambda n=n: change(n) for n in (2, 3, 4)])


@scenario(after_change=(1, 1, 1))
def number_on_a_class_becomes_something_else():
    class Settings:
        scale = 1

    def change(value):
        Settings.scale = value

    return Setup(lambda x: x * Settings.scale, lambda: (t(3),), changes=[lambda v=v: change(v) for v in (2, 2.5, property(lambda self: 3))])


@scenario(skip="UserBreak")
def class_written_before_and_after_a_break():
    Counter, _ = counter_class()

    def f(x):
        Counter.n += 1
        Counter.cache = [x]
        y = x + 1
        torch._dynamo.graph_break()
        Counter.n += 1
        return y * Counter.n, Counter.cache

    return Setup(f, lambda: (t(3),), watch=lambda: (Counter.n, Counter.cache))


@scenario(graphs=0, captures=(1,))
def class_written_before_an_exception():
    Counter, _ = counter_class()

    def f(x):
        Counter.n = 7
        if Counter.n == 7:
            raise ValueError(x.shape[0])
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: Counter.n)


@scenario(skip="AttributeWrite")
def methods_of_a_class_are_not_replaced_in_a_graph():
    class K:
        def m(self, y):
            return y

    old = K.m

    def f(x):
        K.m = lambda self, y: y * 2
        result = K().m(x)
        K.m = old
        return result

    return Setup(f, lambda: (t(3),), watch=lambda: K.m is old)


@scenario(captures=(1, 1), after_change=(1,))  # the number of a handle, which is a key, is another one in each call
def hook_for_the_length_of_a_call():
    torch.manual_seed(0)
    m = nn.Linear(3, 3)

    def f(x):
        seen = []
        handle = m.register_forward_hook(lambda module, args, output: seen.append(output))
        y = m(x)
        handle.remove()
        return y, seen, len(m._forward_hooks)

    return Setup(f, lambda: (t(2, 3),), watch=lambda: len(m._forward_hooks), changes=[lambda: None])


@scenario()
def reference_to_a_dict_that_exists():
    from collections import OrderedDict

    d = OrderedDict(a=1)

    def f(x):
        r = weakref.ref(d)
        return x * r()["a"], r() is d, r is weakref.ref(d)

    return Setup(f, lambda: (t(3),))


@case(lambda: (t(3),))
def names_of_a_function_are_not_in_its_dict(x):
    def g(y):
        "as written"
        return y

    g.calls = 0
    g.__doc__, g.__name__, g.__qualname__, g.__module__ = "set", "named", "a.named", "elsewhere"
    held, doc = dict(g.__dict__), g.__doc__
    del g.__doc__

    def more(f):
        @functools.wraps(f)
        def inner(*args):
            return f(*args) + 1

        return inner

    twice = more(more(g))
    refused = outcome(lambda: setattr(g, "__name__", 3)), outcome(lambda: delattr(g, "__qualname__"))
    return twice(x), g, g.__doc__, doc, held, twice.__name__, list(twice.__dict__), twice, refused


def multiplier():
    n = 1

    def g(y):
        return y * n

    return g


@case(lambda: (t(3),))
def cell_contents_are_set(x):
    g = multiplier()
    first = g(x)
    g.__closure__[0].cell_contents = 5
    return first, g(x), g.__closure__[0].cell_contents, g


@scenario(captures=(1, 1))
def cell_contents_of_an_existing_function_are_set():
    g = multiplier()

    def f(x):
        before = g(x)
        g.__closure__[0].cell_contents = 7
        return before, g(x)

    return Setup(f, lambda: (t(3),), watch=lambda: g.__closure__[0].cell_contents)


test_lists7_classes = cases.as_test(__name__)
