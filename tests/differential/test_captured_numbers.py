"""Tensors read as Python numbers, with torch._dynamo.config.capture_scalar_outputs: what is captured, and what breaks."""

from collections.abc import Callable
from typing import Any

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()


def counts(seed: int = 0) -> torch.Tensor:
    return t(4, seed=seed, dtype=torch.int64)


def captured(args: Callable[[], Any], changed: Callable[[], Any] | None = None, **expect: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A case with the setting on. `changed`: arguments of a third call, which must need no new capture unless it is told."""
    expect.setdefault("after_change", (0,) if changed is not None and "skip" not in expect else None)

    def add(fn: Callable[..., Any]) -> Callable[..., Any]:
        def build() -> Setup:
            given = [args]
            cdynamo.config.capture_scalar_outputs = True
            changes = [] if changed is None else [lambda: given.append(changed)]
            return Setup(fn, lambda: given[-1](), changes=changes, cleanup=lambda: delattr(cdynamo.config, "capture_scalar_outputs"))

        build.__name__ = fn.__name__
        cases.scenario(**expect)(build)
        return fn

    return add


# ---- captured ----------------------------------------------------------------------------------------------------------


@captured(lambda: (t(4), counts()), lambda: (t(4, seed=5), counts(5)), ops=["sum", "item", "mul"])
def a_number_as_operand(x, n):
    return x * n.sum().item()


@captured(lambda: (t(4), counts()), lambda: (t(4, seed=5), counts(5)), ops=["sum", "mul"])
def a_number_that_nobody_reads(x, n):
    total = x.sum()
    total.item()
    return total * x


@captured(lambda: (t(4), counts()), lambda: (t(4, seed=5), counts(5)))
def the_number_itself(x, n):
    y = x + 1
    return y, n.max().item(), x.sum().item(), (n.sum() > 3).item()


@captured(lambda: (t(4), counts()), lambda: (t(4, seed=5), counts(5)))
def arithmetic(x, n):
    a, f = n[0].item(), x[0].item()
    numbers = [a + 1, 1 + a, a - 2, 2 - a, a * 3, a / 4, a // 3, a % 5, -a, +a, abs(a - 7), a**2]
    numbers += [f + 1, 1.5 - f, f * 3, f / 4, f / -0.5, -f, abs(f), f + a, a * f]
    return x * numbers[0], numbers


@captured(lambda: (t(4), counts()), lambda: (t(4, seed=5), counts(5)))
def comparisons(x, n):
    a, f = n[0].item(), x[0].item()
    return x + 1, [a < 3, a <= 3, a == 3, a != 3, a > 3, a >= 3, f < 0.5, 0.5 < f, a == f, a == None, a != "3", a is None]  # noqa: E711


@captured(lambda: (t(4), counts()), lambda: (t(4, seed=5), counts(5)))
def conversions(x, n):
    a, f = n[0], x[0] * 7
    return x + 1, int(a), int(f), float(a), float(f), bool(a), bool(f), int(a.item()), float(a.item()), int(f.item()), bool(f.item())


@captured(lambda: (torch.tensor([[2]]), torch.tensor([True]), torch.tensor(1.5, dtype=torch.float16), torch.tensor(200, dtype=torch.uint8)))
def kinds_of_tensors(a, b, c, d):
    return a + 1, a.item(), b.item(), c.item(), d.item(), int(b.item()) if False else 0


@captured(lambda: (t(3), torch.tensor([[1, 2], [3, 4]])), lambda: (t(3), torch.tensor([[5, -6], [7, 8]])))
def lists_of_numbers(x, n):
    rows = n.tolist()
    return x * rows[1][0], rows, [a + 1 for a in rows[0]], n[0, 0].tolist(), x.tolist()


@captured(lambda: (t(3), torch.tensor([1, 2, 3])))
def sums_of_numbers(x, n):
    a, b, c = n.tolist()
    return x * sum([a, b, c]), sum(n.tolist(), 10)


@captured(lambda: (t(3), counts()), lambda: (t(3), counts(3)))
def numbers_in_objects(x, n):
    a = n[1].item()
    d = {"a": a, "b": (a, a + 1)}
    d["c"] = [a]
    return d, x + a, isinstance(a, int), isinstance(a, float), type(a) is int


@captured(lambda: (t(3), counts()), lambda: (t(3), counts(3)))
def numbers_in_tensor_operations(x, n):
    a, f = n[1].item(), x[0].item()
    y = torch.full((2,), f) + torch.full((2,), a)
    z = torch.where(x > f, x, a)
    return y, z, torch.clamp(x, max=f), x.fill_(f), torch.add(a, x), a - x, f / x, x > f, x == a


@captured(lambda: (t(3), counts()), lambda: (t(3), counts(3)))
def shown_after_the_graph(x, n):
    a, f = n[1].item(), x[0].item()
    print("a", a, f"{a} {f:.3f} {a!r:>4}", "%s" % a, str(f), [a, f])
    return x * a, f"{a}"


@captured(lambda: (t(3), [1]), lambda: (t(3, seed=2), [1]))
def written_to_an_existing_list(x, items):
    items.append(x.sum().item())
    return x + 1


@captured(lambda: (t(3),))
def writes_before_and_after(x):
    x.add_(1)
    a = x[0].item()
    x.mul_(2)
    return a, x[0].item()


@captured(lambda: (t(3), counts()), ops=["getitem", "item", "ge", "_check", "_assert_scalar.default", "mul"])
def a_check(x, n):
    a = n[0].item()
    torch._check(a >= 0)
    return x * a


@captured(lambda: (t(3), counts()), lambda: (t(3), counts() - 100), ops=["getitem", "item", "ge", "check_with_text", "_assert_scalar.default", "mul"])
def a_check_with_message(x, n):
    a = n[0].item()
    torch._check_value(a >= 0, lambda: "too small")
    return x * a


@captured(lambda: (t(3, grad=True), counts()))
def a_tensor_with_grad(x, n):
    return (x * x.sum().item()).sum(), x.max().item(), (x * n[0].item()).sum()


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(2.0))
        self.last = 0.0

    def forward(self, x):
        self.last = self.factor.item()
        return x * self.last


@cases.scenario(after_change=(0,))
def a_module_that_keeps_the_number():
    module = Scaled()
    cdynamo.config.capture_scalar_outputs = True

    def change():
        with torch.no_grad():
            module.factor.add_(1)

    return Setup(
        lambda x: (module(x), module.last),
        lambda: (t(3),),
        watch=lambda: module.last,
        changes=[change],
        cleanup=lambda: delattr(cdynamo.config, "capture_scalar_outputs"),
    )


# ---- breaks ------------------------------------------------------------------------------------------------------------


@captured(lambda: (t(3), counts()), lambda: (t(3), counts() - 50), skip="DataDependentBranch")
def a_branch(x, n):
    if n[0].item() > 3:
        return x + 1
    return x - 1


@captured(lambda: (t(3), counts()), lambda: (t(3), counts(1)), skip="NumberValue")
def an_index_of_a_list(x, n):
    return x * [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11][n[0].item()]


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(3)), skip="*")
def a_size(x, n):
    return torch.zeros(n.item()), x + 1


@captured(lambda: (t(5), torch.tensor(2)), lambda: (t(5), torch.tensor(3)), skip="*")
def slices_and_items(x, n):
    k = n.item()
    return x[:k], x[k], x[k:].sum()


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def repetition_and_ranges(x, n):
    k = n.item()
    return [x + 1] * k, list(range(k)), "ab" * k, (1,) * k


@captured(lambda: (t(3), torch.tensor(0)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def division_by_it(x, n):
    try:
        return x + 1, 7 // n.item()
    except ZeroDivisionError as error:
        return x - 1, str(error)


@captured(lambda: (t(3), torch.tensor(-2)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def powers_of_it(x, n):
    k = n.item()
    return x + 1, 2**k, k**-1, k & 3, k << 1 if False else 0, ~k


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def a_bool_as_operand(x, n):
    return x.add(x, alpha=n.item()), x * (n.item() > 2), (n.item() > 2) + 1, torch.tensor(n.item())


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def a_key(x, n):
    k = n.item()
    return {k: x + 1}, {1: "a", 2: "b"}.get(k), k in (1, 2), k in [3]


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def methods_of_it(x, n):
    return x + 1, n.item().bit_length(), x[0].item().is_integer()


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(3)), skip="NumberValue")
def identity_of_it(x, n):
    k = n.item()
    return x + 1, k is 2, k is k  # noqa: F632


@captured(lambda: (t(3), torch.tensor(2)), lambda: (t(3), torch.tensor(-3)), skip="*")
def extremes(x, n):
    k = n.item()
    return x + 1, max(k, 1), min(1, k), sorted([k, 1]), round(x[0].item(), 1), divmod(k, 2)


@captured(lambda: (t(3), torch.tensor(-2)), skip="NumberValue")
def a_check_that_is_caught(x, n):
    try:
        torch._check(n.item() > 0, lambda: "negative")
    except RuntimeError as error:
        return x + 1, str(error)
    return x - 1


@captured(lambda: (t(3), torch.tensor(-2), []), skip="NumberValue")
def a_check_after_a_write(x, n, items):
    items.append(1)
    torch._check(n.item() > 0)
    return x - 1


@captured(lambda: (t(3), counts()), skip="UnsupportedText")
def a_bad_format(x, n):
    try:
        return x + 1, f"{n[0].item():s}"
    except ValueError as error:
        return x - 1, str(error)


@captured(lambda: (t(3), torch.tensor([1 + 2j])), skip="ScalarRead")
def a_complex_number(x, n):
    return x + 1, n.item()


@captured(lambda: (t(3),), skip="ScalarRead")
def many_elements(x):
    try:
        return x.item()
    except RuntimeError as error:
        return x + 1, str(error)


@captured(lambda: (t(300),), skip="TensorToList")
def a_long_list(x):
    return (x + 1).tolist()


@captured(lambda: (t(3), counts()), lambda: (t(3), counts(3)), skip="UserBreak")
def carried_over_a_break(x, n):
    a, f = n[0].item(), x[0].item()
    y = x * a
    torch._dynamo.graph_break()
    return y + a, f * 2, a > 3


@cases.case(lambda: (t(3), counts()), skip="ScalarRead")
def off_by_default(x, n):
    return x * n[0].item(), float(x[0]), int(n[1]), bool(n[0]), n.tolist()


test = cases.as_test(__name__)
