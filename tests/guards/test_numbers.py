"""Numbers that change from call to call: what is guarded, what is computed in each call, how often a function is captured."""

import math
import operator

import pytest
import torch

import cdynamo
from cdynamo._events import listening

L0, L1 = ("local", 0), ("local", 1)


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


@pytest.fixture
def guards(C):
    return lambda *facts, wanted=(): C._TestGuards(list(facts), wanted, ("n", "m"), None)


class Counted:
    """A compiled function that counts its captures, those with a graph apart."""

    def __init__(self, fn, backend="eager", **options):
        self.fn, self.compiled = fn, cdynamo.compile(fn, backend=backend, **options)
        self.captures = self.graphs = 0
        self.recompiles = []

    def _record(self, kind, payload):
        if kind == "capture":
            self.captures += 1
            self.graphs += payload.get("graph") is not None
        elif kind == "recompile":
            self.recompiles += [str(text) for text in payload.get("failed") or ()]

    def __call__(self, *args):
        with listening(self._record):
            return self.compiled(*args)

    def guards(self):
        return "\n".join(line for entry in self.compiled.entries() for line in entry["guards"])


def same(a, b):
    if isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape, a.stride(), a.requires_grad) == (b.dtype, b.shape, b.stride(), b.requires_grad)
        return torch.equal(torch.nan_to_num(a, nan=12345.0), torch.nan_to_num(b, nan=12345.0)) and torch.equal(a.isnan(), b.isnan())
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and (repr(a) == repr(b))


@torch._dynamo.disable
def outside(x):
    return None


# ---- the guard program -------------------------------------------------------------------------------------------------


def test_range(guards):
    g = guards(("range", L0, 2, 9))
    assert g.check((2,)) is not None and g.check((9,)) is not None
    assert g.check((1,)) is None and g.check((10,)) is None and g.check((True,)) is None and g.check((3.0,)) is None
    assert g.explain((1,)) == "2 <= L['n'] <= 9  # actual: 1"
    assert "INT_RANGE: 2 <= L['n'] <= 9" in g.describe()


def test_the_ends_of_int64_are_no_bounds(guards):
    low, high = -(2**63), 2**63 - 1
    g = guards(("range", L0, 2, high))
    assert g.check((2**70,)) is not None and g.check((-(2**70),)) is None
    assert g.explain((1,)) == "2 <= L['n']  # actual: 1"
    g = guards(("range", L0, low, 2))
    assert g.check((-(2**70),)) is not None and g.check((2**70,)) is None
    assert g.explain((3,)) == "L['n'] <= 2  # actual: 3"


def test_ranges_narrow_each_other(guards):
    g = guards(("range", L0, 0, 9), ("range", L0, 3, 20), ("range", L0, 1, 8), ("range", L0, 0, 100))
    assert [line for line in g.describe() if "RANGE" in line] == ["INT_RANGE: 3 <= L['n'] <= 8"]
    assert g.check((3,)) is not None and g.check((9,)) is None and g.check((2,)) is None
    assert "INT_RANGE: L['n'] == 3" in guards(("range", L0, 3, 3)).describe()


def test_arithmetic(guards):
    doubled = ("add", ("mul", L0, ("pinned", 2)), ("pinned", -1))
    mixed = ("truediv", L1, ("sub", L0, ("pinned", 3)))
    g = guards(("type", L0, int), ("range", doubled, 1, 7), wanted=(doubled, mixed, ("mod", L0, L1), ("floordiv", L0, L1)))
    assert g.check((4, 5)) == (7, 5.0, 4, 0)
    assert g.check((5, 5)) is None
    assert g.explain((5, 5)) == "1 <= (L['n']*2) + -1 <= 7  # actual: 9"
    assert g.check((3, 5)) is None  # a division by zero is a miss
    assert g.explain((3, 5)) == "L['m']/(L['n'] - 3) can be computed"
    assert g.check((4, "a")) is None


def test_number_tensor(guards):
    g = guards(wanted=(("number_tensor", L0),))
    for number, dtype in ((7, torch.int64), (-(2**63), torch.int64), (0.5, torch.float64), (math.inf, torch.float64)):
        (made,) = g.check((number,))
        assert made.dtype is dtype and made.shape == () and made.item() == number and not made.requires_grad
    (zero,) = g.check((-0.0,))
    assert math.copysign(1, zero.item()) == -1
    assert g.check((2**63,)) is None
    assert "<= L['n'] <=" in g.explain((2**63,))
    assert g.check((True,)) is None


# ---- how often ---------------------------------------------------------------------------------------------------------


def test_two_captures_for_an_argument_that_changes():
    f = Counted(lambda x, n: x * n + n)
    x = torch.arange(4.0)
    for n in (3, 4, 0, -1, 2**40, -(2**63), 2**63 - 1, 5):
        assert same(f(x, n), f.fn(x, n)), n
    assert f.captures == 2 and len(f.recompiles) == 1 and "L['n'] == 3  # actual: 4" in f.recompiles[0]


def test_dynamic_false_and_true():
    x = torch.arange(4.0)
    never, always = Counted(lambda x, n: x * n, dynamic=False), Counted(lambda x, n: x * n, dynamic=True)
    for n in range(5):
        assert same(never(x, n), x * n) and same(always(x, n), x * n)
    assert (never.captures, always.captures) == (5, 1)
    items = Counted(lambda x, ns, d: x * ns[0] + d["a"], dynamic=True)
    for n in range(5):
        assert same(items(x, [n], {"a": n}), x * n + n)
    assert items.captures == 1


def test_types_are_told_apart():
    f = Counted(lambda x, n: (x * n, n))
    x = torch.arange(4)
    for n in (2, 3, True, False, 2.5, 3.5, 4, True, 4.5):
        assert same(f(x, n), f.fn(x, n)), n
    x = x.float()
    for n in (2, 3, True, 2.5, 3.5, -0.0, 0.0, math.nan, math.inf, 4):
        assert same(f(x, n), f.fn(x, n)), n


def test_float_zero_and_nan():
    f = Counted(lambda x, n: torch.copysign(torch.ones(3), x * n))
    x = torch.ones(3)
    for n in (1.0, 2.0, 0.0, -0.0, -1.0, math.nan):
        assert same(f(x, n), f.fn(x, n)), n
    assert f.captures == 2


def test_a_number_too_large_for_a_tensor_is_specialised():
    def f(x, n):
        return x * (n % 1000), n + 1

    f = Counted(f)
    x = torch.arange(4.0)
    for n in (3, 4, 2**70, 2**70 + 1, -(2**70), 5, 2**63 - 1, 2**63):
        assert same(f(x, n), f.fn(x, n)), n
    g = Counted(lambda x, n: x + n)
    for n in (3, 4, 2**63 - 1, 2**63, 2**63 + 1, 5):
        assert same(g(x, n), g.fn(x, n)), n
    with pytest.raises(OverflowError):
        x + 2**70
    with pytest.raises(OverflowError):
        g(x, 2**70)


# ---- branches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge])
@pytest.mark.parametrize("form", ["n", "n + 3", "3 - n", "n * 2", "-n", "n * -3 + 1", "2 * (n - 1) + n * 0", "n % 4", "n // 3", "n - m", "n * m"])
def test_comparisons_on_both_sides(op, form):
    value = eval(f"lambda n, m: {form}")

    def fn(x, n, m):
        v = value(n, m)
        return (x + v if op(v, 4) else x - v), v, op(4, v)

    f = Counted(fn)
    x = torch.arange(3.0)
    for n in (*range(-9, 12), 4, 1, 2**59, -(2**59), 7):
        for m in (2, 5):
            assert same(f(x, n, m), fn(x, n, m)), (n, m)


def test_a_branch_makes_two_captures():
    f = Counted(lambda x, n: x * n if n < 5 else x - n)
    x = torch.arange(3.0)
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 100, -100, 4, 5):
        assert same(f(x, n), f.fn(x, n)), n
    assert f.captures == 3
    assert "INT_RANGE: L['n'] <= 4" in f.guards() and "INT_RANGE: 5 <= L['n']" in f.guards()


def test_comparisons_of_floats():
    f = Counted(lambda x, a, b: (x * a if a > b else x - a, a == 1.5, a <= 2, b != 2))
    x = torch.arange(3.0)
    for a in (0.5, 1.5, 2.5, -0.0, 0.0, math.inf, math.nan, 2):
        for b in (0.25, 1.75, math.nan):
            assert same(f(x, a, b), f.fn(x, a, b)), (a, b)
    assert "ID_MATCH: L['a'] > L['b'] is True" in f.guards()
    g = Counted(lambda x, rate: x * rate if rate > 0.5 else x - rate)
    for i in range(20):
        assert same(g(x, i / 10), g.fn(x, i / 10))
    assert g.captures == 3


def test_comparisons_at_the_ends():
    f = Counted(lambda x, n: (x, n < 2**63 - 1, n > -(2**63), n < 2**70, n - (2**62) < 5, n + 2**62 > 5, n == 2**63 - 1))
    x = torch.arange(3.0)
    for n in (1, 2, 2**63 - 1, -(2**63), 2**62 + 4, 2**62 + 5, 2**63, 2**70, -(2**70), 2**63 - 2):
        assert same(f(x, n), f.fn(x, n)), n


def test_uses_that_stay_open():
    f = Counted(lambda x, n: x * int(n) + max(n, -100) - abs(n) + (5 if n in (-50, -40) else 6))
    x = torch.arange(3.0)
    for n in range(20):
        assert same(f(x, n), f.fn(x, n)), n
    assert f.captures == 2
    assert same(f(x, -3), f.fn(x, -3)) and same(f(x, -40), f.fn(x, -40))


def test_printing(capsys):
    def fn(x, n):
        print("n is", n, n + 1, n / 2)
        return x * n

    f = Counted(fn)
    x = torch.arange(3.0)
    for n in range(6):
        assert same(f(x, n), x * n)
        assert capsys.readouterr().out == f"n is {n} {n + 1} {n / 2}\n"
    assert f.captures == 2


def test_id_of_what_was_computed():
    f = Counted(lambda x, n: (x * n, id(n + 1000) is None, (n + 1000) in [n + 1000], [n, n + 1].index(n + 1)))
    x = torch.arange(3.0)
    for n in (3, 4, 1000, 1001):
        assert same(f(x, n), f.fn(x, n))


def test_two_open_numbers_against_each_other():
    f = Counted(lambda x, a, b: x + a if a < b else x - b)
    x = torch.arange(3.0)
    for a in range(6):
        for b in range(6):
            assert same(f(x, a, b), f.fn(x, a, b))
    assert f.captures <= 5


def test_truth():
    f = Counted(lambda x, n: x * n if n else x - 1)
    x = torch.arange(3.0)
    for n in (0, 1, 2, 0, 3, -1, 10):
        assert same(f(x, n), f.fn(x, n)), n
    assert f.captures <= 3


FIVE = 5


def test_identity():
    def fn(x, n):
        m = n + 1
        return x + m, n is None, m is None, m is m, n is FIVE, m is FIVE, m is n, m is not n

    f = Counted(fn)
    x = torch.arange(3.0)
    for n in (3, 4, 5, 6, 1000, 1001):
        assert same(f(x, n), fn(x, n)), n


def test_the_object_that_came_in_leaves():
    f = Counted(lambda x, n: (x * n, n, [n, n]))
    x = torch.arange(3.0)
    for n in (1000, 1001, 1002, 1003.5, 1004.5):
        _, out, twice = f(x, n)
        assert out is n and twice[0] is n and twice[1] is n


# ---- uses that need the value ------------------------------------------------------------------------------------------

USES = {
    "range": lambda x, n: [x + i for i in range(n)],
    "list index": lambda x, n: x * [1, 2, 3, 4, 5][n],
    "tensor index": lambda x, n: x[n],
    "slice": lambda x, n: x[:n],
    "computed slice": lambda x, n: x[n - 1 : n + 1],
    "view": lambda x, n: x.repeat(n + 1, 1).view(n + 1, -1),
    "text": lambda x, n: (x, str(n), f"{n + 1:03d}", format(n, "d"), repr(n)),
    "isinstance": lambda x, n: (x, isinstance(n, int), isinstance(n + 1, (int, str)), type(n + 1) is int),
    "int": lambda x, n: (x * int(n), int(n + 1)),
    "float": lambda x, n: x * float(n + 1),
    "bool": lambda x, n: (x, bool(n - 2), not n),
    "dict key": lambda x, n: (x * {0: 5, 1: 6, 2: 7, 3: 8}[n], {n + 1: 1}),
    "set": lambda x, n: (x, n in {1, 2}, n + 1 in (1, 3), {n} | {1}),
    "power": lambda x, n: (x**n, n**2, 2**n),
    "bits": lambda x, n: (x, n & 1, n << 2, n | 4, n ^ 3, ~n),
    "methods": lambda x, n: (x, n.bit_length(), (n + 1).real, n.__add__(2)),
    "sequence": lambda x, n: (x, [1] * n, (2,) * (n + 1), "a" * n),
    "min and max": lambda x, n: (x * max(n, 2), min(n + 1, 3), abs(n - 2), round(n), divmod(n, 2)),
    "sum": lambda x, n: (x, sum([n, 1, n + 1]), sorted([n, 2, 1])),
    "enumerate": lambda x, n: (x, list(enumerate([5], n))),
    "zeros": lambda x, n: torch.zeros(n) + 1,
    "full": lambda x, n: torch.full((2,), n + 1),
    "arange": lambda x, n: torch.arange(n),
    "a tensor of it": lambda x, n: torch.tensor(n + 1) + torch.tensor([n]),
    "dim": lambda x, n: x.reshape(1, 1, 1, -1).sum(n),
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "clamp": lambda x, n: x.clamp(max=n),
    "no dimension": lambda x, n: x.sum() * n + n,
    "bool tensor": lambda x, n: (x > 1) * n,
    "keyword": lambda x, n: torch.mul(input=x, other=n),
    "math": lambda x, n: (x, math.sqrt(n), math.floor(n + 1)),
    "complex": lambda x, n: (x * complex(n, 1), n + 1j),
    "nested": lambda x, n: (x * n, [(n, {"a": n + 1})]),
    "division": lambda x, n: (n / (x + 1), 1 / (n + 1), 7 // (n + 1), (n + 1) / 4, 7 % (n + 1)),
    "compare with float": lambda x, n: (x, n < 1.5, n == 2.0, n + 0.5 > 2),
    "item assignment": lambda x, n: x.clone().index_fill_(0, torch.tensor([0]), n),
}


@pytest.mark.parametrize("use", USES)
def test_uses_of_the_value(use):
    f = Counted(USES[use], fullgraph=True)
    x = torch.arange(4.0)
    for n in (1, 2, 3, 0, 2):
        assert same(f(x, n), f.fn(x, n)), n


# ---- tensors -----------------------------------------------------------------------------------------------------------


def reflected(op):
    return lambda x, n: op(n, x)


def method(name):
    return lambda x, n: getattr(x, name)(n)


PLAIN = ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "le", "eq", "ne", "gt", "ge", "iadd", "isub", "imul", "itruediv"]
OPERATIONS = {
    **{name: getattr(operator, name) for name in PLAIN},
    **{"r" + name: reflected(getattr(operator, name)) for name in PLAIN[:12]},
    **{"torch." + name: getattr(torch, name) for name in ["add", "sub", "mul", "div", "floor_divide", "remainder", "lt", "ne"]},
    **{"." + name: method(name) for name in ["add", "sub", "mul", "div", "remainder", "ge", "add_", "mul_"]},
}
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64]


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_give_what_eager_gives(name, default):
    op = OPERATIONS[name]
    torch.set_default_dtype(default)
    try:
        for dtype in DTYPES:
            f = Counted(lambda x, n: op(x.clone(), n))
            x = torch.tensor([1.37, 2, 3, 100, 0, 1]).to(dtype)
            for n in (3, 7, 300, 70001, 1, 0.1, 2.5, -0.0, 1e39):
                try:
                    expected = f.fn(x, n)
                except (RuntimeError, ZeroDivisionError) as error:
                    with pytest.raises(type(error)):
                        f(x, n)
                    continue
                assert same(f(x, n), expected), (dtype, n)
    finally:
        torch.set_default_dtype(torch.float32)


def test_gradients():
    f = Counted(lambda x, n: (x * n + n / 2 - x / n).sum())
    for n in (2, 3, 4, 0.5, 0.25):
        x, y = (torch.arange(1.0, 4.0, requires_grad=True) for _ in range(2))
        f(x, n).backward()
        f.fn(y, n).backward()
        assert torch.equal(x.grad, y.grad)
    assert f.captures == 3


def test_one_input_per_number():
    seen = []

    def backend(gm, inputs):
        seen.append([node.target for node in gm.graph.nodes if node.op == "placeholder"])
        return gm.forward

    f = Counted(lambda x, n: (x * n + n) * (n + 1) - (n + 1), backend=backend)
    x = torch.arange(3.0)
    for n in (2, 3, 4):
        assert same(f(x, n), f.fn(x, n))
    assert len(seen) == 2 and len(seen[1]) == 3 and seen[1][:2] == ["L_x_", "L_n_"]


def test_inductor_with_a_tensor_of_no_dimension():
    f = Counted(lambda x, s: x * s, backend="inductor")
    for value in (0.5, 0.25):
        x, s = torch.arange(4.0), torch.tensor(value, dtype=torch.float64)
        torch.testing.assert_close(f(x, s), x * s)


def test_inductor_never_bakes_a_number():
    f = Counted(lambda x, n, s: ((x * n + (n + 1)) * s).relu(), backend="inductor")
    for n, s in ((2, 0.5), (3, 0.25), (4, 2.0), (-7, -0.5), (100, 3.5)):
        x = torch.arange(4.0)
        torch.testing.assert_close(f(x, n, s), f.fn(x, n, s))
    assert f.captures == 2


# ---- where numbers live ------------------------------------------------------------------------------------------------


def test_closures():
    def make():
        n = 0

        def count(x):
            nonlocal n
            n += 1
            return x * n

        return count

    f, g = Counted(make()), make()
    x = torch.arange(3.0)
    for _ in range(20):
        assert same(f(x), g(x))
    assert f.captures == 2


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.rate = 1.0

    def forward(self, x):
        self.calls += 1
        self.rate = self.rate * 0.5
        return x * self.calls + self.rate if self.calls > 10 else x - self.calls


def test_module_that_counts_its_calls():
    captures = []
    eager, compiled = Counting(), Counting()
    run = cdynamo.compile(compiled, backend="eager")
    x = torch.arange(3.0)
    with listening(lambda kind, payload: captures.append(kind) if kind == "capture" else None):
        for _ in range(40):
            assert same(run(x), eager(x))
            assert (compiled.calls, compiled.rate) == (eager.calls, eager.rate)
    assert len(captures) == 3


def test_list_of_ints():
    f = Counted(lambda x, ns: x * ns[0] + ns[1] - ns[2] * 2)
    x = torch.arange(3.0)
    for i in range(10):
        assert same(f(x, [i, i * i, 7]), f.fn(x, [i, i * i, 7]))
    assert f.captures <= 3


STEP = 0


def test_globals():
    global STEP

    def fn(x):
        return x + STEP

    f = Counted(fn)
    x = torch.arange(3.0)
    for i in range(10):
        STEP = i
        assert same(f(x), fn(x))
    assert f.captures == 2


def test_reset_forgets_open_numbers():
    f = Counted(lambda x, n: x * n)
    x = torch.arange(3.0)
    f(x, 1), f(x, 2)
    cdynamo.reset()
    f(x, 3), f(x, 3)
    assert f.captures == 3 and "EQUALS_MATCH: L['n'] == 3" in f.guards()


# ---- loops with breaks -------------------------------------------------------------------------------------------------


def test_while_counter():
    def fn(x, limit):
        s = 0
        while s < limit:
            x = x + 1
            outside(x)
            s += 1
        return x, s

    f = Counted(fn)
    assert same(f(torch.zeros(2), 10_000), (torch.full((2,), 10_000.0), 10_000))
    assert f.graphs <= 3 and f.captures <= 4


def test_for_counter():
    def fn(x, limit):
        total = 0
        for i in range(limit):
            x = x + i
            outside(x)
            total += i
            if i % 1000 == 0:
                x = x * 1
        return x, total

    f = Counted(fn)
    x = torch.zeros(2, dtype=torch.float64)
    assert same(f(x, 10_000), fn(x, 10_000))
    assert f.captures <= 12
    before = f.captures
    assert same(f(x, 9_000), fn(x, 9_000))
    assert f.captures <= before + 2


def test_a_value_read_from_a_tensor_in_a_loop():
    def fn(x):
        best, steps = 1e9, 0
        while True:
            x = x * 0.9
            loss = x.sum().item()
            if loss < best - 0.01:
                best = loss
            else:
                break
            steps += 1
        return x, best, steps

    f = Counted(fn)
    assert same(f(torch.ones(3)), fn(torch.ones(3)))
    assert f.captures <= 8


def test_float_in_a_loop():
    def fn(x):
        rate, step = 1.0, 10
        while step:
            x = x * rate
            outside(x)
            rate = rate * 0.5 + 0.1
            step -= 1
        return x, rate

    f = Counted(fn)
    assert same(f(torch.ones(3)), fn(torch.ones(3)))
    assert f.captures <= 5
