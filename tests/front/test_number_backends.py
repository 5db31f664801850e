"""Numbers of the graph (capture_scalar_outputs, Python's random) through torch's own backends, forward and backward."""

import random

import pytest
import torch

import cdynamo

BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True, capture_scalar_outputs=True):
        yield
    cdynamo.reset()


def inputs(seed, grad=True):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(6, generator=g).requires_grad_(grad), torch.randint(1, 9, (3,), generator=g)


def same(a, b):
    assert type(a) is type(b), (a, b)
    if isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, torch.Tensor):
        torch.testing.assert_close(a, b)
    else:
        assert a == pytest.approx(b)


def scaled(x, n):
    return x * n.sum().item() + 1


def by_a_float(x, n):
    return x * x.max().item() + n.float().mean().item()


def returned(x, n):
    k = n[0].item()
    return x * k, k, k + 1, k / 2, k > 3, x.sum().item(), x.sum().item() > 2.5, (n > 3)[0].item(), [k, (k,)]


def arithmetic(x, n):
    a, b, c = n.tolist()
    return x * (a * b - c), a * b - c, a // 2, a % 3, -b, a**2, abs(a - b), float(a), int(x[0].item() * 10), bool(a)


def operations(x, n):
    k, f = n[0].item(), x[0].item()
    y = torch.add(x, x, alpha=k)
    z = torch.zeros(3).fill_(f) * k
    return torch.where(x > f, x, k), torch.clamp(x, max=f), x + torch.full((6,), f), x / (torch.full((6,), k) + 1), y, z, k - x, f / (x + 1), x == k


def checked(x, n):
    k = n[0].item()
    torch._check(k >= 0)
    torch._check(k < 100, lambda: "too large")
    return x * k


def drawn(x, n):
    f = random.random()
    return x * f + random.randint(1, 5), f, random.uniform(0, 1) * 2


def broken(x, n):
    k = n[0].item()
    y = x * k
    torch._dynamo.graph_break()
    return y + k, k


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("fn", [scaled, by_a_float, returned, arithmetic, operations, checked, drawn, broken])
def test_as_eager(fn, backend):
    compiled = cdynamo.compile(fn, backend=backend)
    for seed in (1, 2, 3):
        answers, grads, states = [], [], []
        for call in (fn, compiled):
            x, n = inputs(seed)
            random.seed(seed)
            out = call(x, n)
            states.append(random.getstate())
            tensors = [out] if isinstance(out, torch.Tensor) else [v for v in out if isinstance(v, torch.Tensor)]
            sum(v.sum() for v in tensors if v.requires_grad).backward()
            answers.append(out)
            grads.append(x.grad)
        same(answers[0], answers[1])
        same(grads[0], grads[1])
        assert states[0] == states[1]
    if fn is not broken:
        assert len(compiled.entries()) == 1, compiled.entries()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_check_fails(backend):
    compiled = cdynamo.compile(checked, backend=backend)
    x, n = inputs(1)
    compiled(x, n)
    with pytest.raises(RuntimeError):
        compiled(x, n - 100)


def test_the_message_of_a_check():
    compiled = cdynamo.compile(checked, backend="eager")
    x, n = inputs(1)
    with pytest.raises(RuntimeError, match="too large"):
        compiled(x, n + 1000)


@pytest.mark.parametrize("setter", ["own", "torch"])
def test_the_setting(setter):
    import torch._dynamo.config as theirs

    x, n = inputs(1)
    counts = []

    def breaks(value):
        cdynamo.reset()
        report = cdynamo.explain(scaled)(x, n)
        counts.append((value, report.graph_break_count))

    with cdynamo.config.patch():
        del cdynamo.config.capture_scalar_outputs
        for value in (True, False):
            if setter == "own":
                with cdynamo.config.patch(capture_scalar_outputs=value):
                    breaks(value)
            else:
                with theirs.patch(capture_scalar_outputs=value):
                    breaks(value)
    assert counts == [(True, 0), (False, 1)]


def test_fullgraph_captures_numbers():
    with cdynamo.config.patch(capture_scalar_outputs=False):
        x, n = inputs(1)
        same(cdynamo.compile(scaled, backend="eager", fullgraph=True)(x, n), scaled(x, n))


def test_the_graph_as_torch_sees_it():
    seen = []

    def backend(gm, examples):
        seen.append(gm)
        return gm.forward

    x, n = inputs(1)
    cdynamo.compile(scaled, backend=backend)(x, n)
    (item,) = [node for node in seen[0].graph.nodes if node.target == "item"]
    assert type(item.meta["example_value"]) is torch.SymInt
    assert len(item.meta["unbacked_bindings"]) == 1
    assert [node.target for node in seen[0].graph.nodes if node.op.startswith("call")][-1].__name__ == "add"


def test_random_inputs_come_last():
    seen = []

    def backend(gm, examples):
        seen.append(([node.target for node in gm.graph.nodes if node.op == "placeholder"], [tuple(e.shape) for e in examples]))
        return gm.forward

    def f(x, y):
        return random.random() * x + random.randint(0, 3) * y

    x, y = torch.rand(2), torch.rand(2)
    random.seed(3)
    answer = cdynamo.compile(f, backend=backend)(x, y)
    random.seed(3)
    assert torch.equal(answer, f(x, y))
    assert seen == [(["L_x_", "L_y_", "random_value_0", "random_value_1"], [(2,), (2,), (), ()])]
