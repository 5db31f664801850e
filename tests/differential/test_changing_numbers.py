"""Numbers that change from call to call, in every place where a number can come from."""

import math

import torch
from differ import Cases, Setup, t

cases = Cases()
scenario = cases.scenario

COUNT = 0


def numbers(fn, *values, x=lambda: t(3), **rest):
    """fn(x, *values) with each tuple of values in turn."""
    given = [v if isinstance(v, tuple) else (v,) for v in values]
    state = {"v": given[0]}

    def put(v):
        return lambda: state.update(v=v)

    return Setup(fn, lambda: (x(), *state["v"]), changes=[put(v) for v in given[1:]], **rest)


@scenario(after_change=(1, 0, 0, 0))
def scaled():
    return numbers(lambda x, n: (x * n, n, n + 1), 2, 3, -1, 0, 2**40)


@scenario(after_change=(1, 1, 1, 0, 0, 0))
def types_in_turn():
    return numbers(lambda x, n: (x + n, n), 1, 2, True, 1.0, 2.0, 3, True)


@scenario(after_change=(1, 0, 0, 0, 0))
def floats():
    return numbers(lambda x, f: (x * f, x / f, x + f * 2, f), 0.5, 0.0, -0.0, math.inf, math.nan, 1e300)


@scenario(after_change=(1, 1, 0, 0, 0))
def both_sides_of_a_boundary():
    return numbers(lambda x, n: x * n if 3 <= n + 1 < 7 else x - n, 2, 3, 7, 8, 4, 5)


@scenario(after_change=(1, 1, 0, 0))
def products_and_remainders():
    return numbers(lambda x, n: x * (n * 3 - 1) if n % 3 == 0 else x // (n + 2), 1, 2, 3, 6, 4)


@scenario(after_change=(1, 0, 0))
def too_large():
    return numbers(lambda x, n: (x + n % 7, n * 2), 5, 6, 2**70, 2**70 + 1)


@scenario(after_change=(1, 1, 1))
def value_needed():
    return numbers(lambda x, n: x.repeat(n)[: n + 1] ** n, 1, 2, 3, 4)


@scenario(after_change=(1, 0, 0))
def two_numbers():
    return numbers(lambda x, a, b: (x * a + b if a < b else x, a - b, a * b, a / b), (1, 2), (2, 4), (3, 4), (-5, 9))


@scenario(after_change=(1, 0, 0))
def list_of_numbers():
    return numbers(lambda x, ns: [x * n for n in ns] + [ns], [1, 2], [2, 3], [4, 5], [6, 6])


@scenario(after_change=(1, 0, 0))
def dict_of_numbers():
    return numbers(lambda x, d: (x * d["a"], {**d, "b": d["a"] + 1}), {"a": 1}, {"a": 2}, {"a": 3}, {"a": 4})


@scenario(after_change=(1, 0, 0))
def integer_tensors():
    return numbers(lambda x, n: (x * n, x / n, x // n, x % n, n - x, x < n, n >= x), 2, 3, 7, 300, x=lambda: t(4, dtype=torch.int32))


@scenario(after_change=(1, 0))
def half_tensors():
    return numbers(lambda x, n, f: (x * n, n * x, x / n, x - f, f < x), (3, 0.1), (7, 0.3), (1001, 1e6), x=lambda: t(4, dtype=torch.float16))


@scenario(after_change=(1, 0))
def in_place():
    def fn(x, n):
        x += n
        x.mul_(n + 1).sub_(n)
        x /= n
        return x

    return numbers(fn, 2, 3, 4)


@scenario(after_change=(1, 0))
def gradients():
    def fn(x, n):
        return (x * n / (n + 1) - n).pow(2).sum()

    kept = []

    def made():
        kept.append(t(3, grad=True))
        return kept[-1]

    return numbers(fn, 2, 3, 4, x=made, after=lambda out: out.backward(), watch=lambda: [v.grad for v in kept])


@scenario(captures=(1, 1), after_change=(0, 0, 0))
def closure_counter():
    n = 10

    def fn(x):
        nonlocal n
        n += 1
        return x * n

    return Setup(fn, lambda: (t(3),), watch=lambda: n, changes=[lambda: None] * 3)


@scenario(captures=(1, 1), after_change=(0, 0, 0))
def global_counter():
    global COUNT
    COUNT = 0

    def fn(x):
        global COUNT
        COUNT += 2
        return x - COUNT

    return Setup(fn, lambda: (t(3),), watch=lambda: COUNT, changes=[lambda: None] * 3)


@scenario(captures=(1, 1), after_change=(0, 1, 0))
def module_counter():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.history = []

        def forward(self, x):
            self.calls += 1
            self.history.append(self.calls)
            return x * self.calls if self.calls < 4 else x + self.calls

    m = Counts()
    return Setup(lambda x: m(x), lambda: (t(3),), watch=lambda: (m.calls, m.history), changes=[lambda: None] * 3)


@scenario(after_change=(1, 0))
def identity():
    return numbers(lambda x, n: (x * n, n, n, [n], n is None, n + 1 is None), 1000, 1001, 1002)


@scenario(after_change=(1, 0))
def vmapped():
    return numbers(lambda x, n: torch.func.vmap(lambda row: row * n + (n + 1))(x), 2, 3, 4, x=lambda: t(3, 2))


@scenario(after_change=(1, 0, None))
def default_dtype():
    setup = numbers(lambda x, n: (x * n, x / n, x + n), 2, 3, 4, x=lambda: t(3, dtype=torch.int64))
    setup.changes.append(lambda: torch.set_default_dtype(torch.float64))
    setup.cleanup = lambda: torch.set_default_dtype(torch.float32)
    return setup


@scenario(after_change=(1, 0))
def autocast():
    def fn(x, n):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return (x @ x) * n + n

    return numbers(fn, 2, 3, 4, x=lambda: t(3, 3))


test_changing_numbers = cases.as_test(__name__)
