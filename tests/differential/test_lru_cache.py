"""functools.lru_cache: the function is called as often as in a plain run, and what is kept is the same object. What the caches themselves say
is compared after each call."""

import functools

import torch
from differ import Cases, Setup, outcome, t

cases = Cases()
scenario = cases.scenario


def with_cache(make, *caches, args=lambda: (t(3),), changes=(lambda: None,)):
    """What the caches count is compared too."""
    return Setup(make, args, changes=changes, watch=lambda: [tuple(c.cache_info()) for c in caches])


@scenario(captures=(1, 1), after_change=(0,))
def first_a_miss_then_a_hit():
    called = []

    @functools.lru_cache
    def cached(n):
        called.append(n)
        return n * 2

    return with_cache(lambda x: (x * cached(3), list(called)), cached)


@scenario(captures=(1, 1), after_change=(1,))
def the_same_list_each_time():
    @functools.lru_cache
    def cached(n):
        return [n]

    def fn(x):
        items = cached(3)
        other = cached(3)
        items.append(7)
        return x * len(other), items is other, cached(3)

    return with_cache(fn, cached)


@scenario(captures=(1, 1), after_change=(0,))
def a_table_of_tensors():
    @functools.lru_cache(maxsize=None)
    def table(n, device="cpu"):
        return torch.arange(n, device=device)

    return with_cache(lambda x: (x + table(3), table(3) is table(3), table(3, device="cpu") is table(3)), table)


@scenario(captures=(1, 1), after_change=(0,))
def keywords_and_types():
    called = []

    @functools.lru_cache(typed=True)
    def typed(a, b=1):
        called.append((a, b))
        return (a, b)

    @functools.lru_cache
    def untyped(a, b=1):
        called.append((a, b))
        return (a, b)

    def fn(x):
        return (
            x + 1,
            typed(1),
            typed(1.0),
            typed(1, b=2),
            typed(True),
            untyped(1),
            untyped(1.0),
            untyped(True),
            untyped(b=2, a=1),
            untyped(a=1, b=2),
            list(called),
        )

    return with_cache(fn, typed, untyped)


@scenario(captures=(1, 1), after_change=(0,))
def none_is_kept():
    called = []

    @functools.lru_cache(maxsize=0)
    def cached(n):
        called.append(n)
        return [n]

    def fn(x):
        called.clear()
        return x * 2, cached(1) is cached(1), len(called)

    return with_cache(fn, cached)


@scenario(captures=(1, 1), after_change=(0,))
def recursion():
    @functools.cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return with_cache(lambda x: (x * fib(20),), fib)


@scenario(captures=(1, 1), after_change=(0,))
def recursion_with_a_limit():
    @functools.lru_cache(maxsize=50)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return with_cache(lambda x: (x * fib(20),), fib)


@scenario(skip="UnknownFunction")
def a_cache_that_is_full():
    called = []

    @functools.lru_cache(maxsize=2)
    def cached(n):
        called.append(n)
        return n * 2

    return with_cache(lambda x: (x * cached(1), cached(2), cached(3), cached(1), list(called)), cached)


@scenario(captures=(1, 1), after_change=(0,))
def methods_look_at_self():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        @functools.lru_cache(maxsize=8)  # noqa: B019
        def table(self, n):
            self.calls += 1
            return torch.full((n,), float(n))

        def forward(self, x):
            return x + self.table(3), self.table(3) is self.table(3), self.calls

    net = Net()
    return with_cache(net, Net.table)


@scenario(captures=(1, 1), after_change=(1, 1))
def another_object_is_another_key():
    class Box:
        pass

    boxes = [Box(), Box()]
    state = {"box": boxes[0]}

    @functools.lru_cache
    def name_of(box):
        return [len(state)]

    changes = [lambda: state.update(box=boxes[1]), lambda: None]
    return with_cache(
        lambda x, box: (x + 1, name_of(box), name_of(box) is name_of(boxes[0])), name_of, args=lambda: (t(3), state["box"]), changes=changes
    )


@scenario(captures=(1, 1), after_change=(1, 1))
def cleared_in_between():
    state = {"n": 1}

    @functools.lru_cache
    def cached():
        return state["n"]

    def clear():
        state["n"] = 5
        cached.cache_clear()

    return with_cache(lambda x: (x * cached(),), cached, changes=[clear, lambda: None])


@scenario(captures=(1, 1), after_change=(0,))
def a_stale_result_stays():
    state = {"n": 1}

    @functools.lru_cache
    def cached():
        return state["n"]

    return with_cache(lambda x: (x * cached(),), cached, changes=[lambda: state.update(n=9)])


@scenario(captures=(1, 1), after_change=(0,))
def one_that_raises_is_called_again():
    called = []

    @functools.lru_cache
    def cached(n):
        called.append(n)
        raise ValueError(n)

    def fn(x):
        called.clear()
        return x + 1, outcome(lambda: cached(4)), outcome(lambda: cached(4)), list(called)

    return with_cache(fn, cached)


@scenario(skip="UnknownFunction")
def an_argument_that_cannot_be_hashed():
    @functools.lru_cache
    def cached(items):
        return len(items)

    return with_cache(lambda x: (x + 1, outcome(lambda: cached([1]))), cached)


@scenario(skip="UnknownFunction")
def tensors_as_keys():
    called = []

    @functools.lru_cache
    def cached(x):
        called.append(1)
        return x * 2

    def fn(x):
        return cached(x) is cached(x), cached(x) + 1, len(called)

    return with_cache(fn, cached)


@scenario(skip="*")
def a_break_in_the_function():
    called = []

    @functools.lru_cache
    def cached(n):
        called.append(n)
        torch._dynamo.graph_break()
        return [n, torch.ones(3) * n]

    def fn(x):
        y = x + 1
        a = cached(3)
        y = y * a[1]
        return y, a is cached(3), list(called)

    return with_cache(fn, cached)


@scenario(captures=(1, 1), after_change=(1,))
def results_made_by_the_graph():
    @functools.lru_cache
    def scale(n):
        return {"w": torch.ones(3) * n, "n": n}

    def fn(x):
        s = scale(2)
        s["n"] += 1
        return x * s["w"], scale(2)["n"], s is scale(2)

    return with_cache(fn, scale)


test_lru_cache = cases.as_test(__name__)
