"""NumPy's operations through torch's own backends."""

import numpy as np
import pytest
import torch

import cdynamo


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


def mixed(x, a):
    b = np.sqrt(a * a + 1) @ a.T
    c = np.concatenate([b, np.ones((1, 2))])
    return torch.from_numpy(c) * x.sum(), b.sum(axis=0), b[0, 1], a / 2


def written(x, a):
    a += 1
    a[0] = 3
    return x * torch.from_numpy(a).sum(), a.max()


def integers(x, a):
    n = a.astype(np.int64)
    return x + 1, n // 1 if False else n * 2, n / 2, n > 2, np.where(n > 2, n, -n), n.sum()


def broken(x, a):
    b = a * 2
    torch._dynamo.graph_break()
    return x + torch.from_numpy(b).sum(), b + a


def same(ours, eager):
    assert type(ours) is type(eager)
    if isinstance(eager, tuple):
        assert len(ours) == len(eager)
        for a, b in zip(ours, eager, strict=True):
            same(a, b)
    elif isinstance(eager, torch.Tensor):
        torch.testing.assert_close(ours, eager)
    else:
        assert ours.dtype == eager.dtype and ours.shape == eager.shape
        np.testing.assert_allclose(ours, eager, rtol=1e-12)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("fn", [mixed, written, integers, broken])
def test_as_eager(fn, backend):
    compiled = cdynamo.compile(fn, backend=backend)
    for seed in (1, 2, 3):
        answers = []
        for call in (fn, compiled):
            array = np.random.default_rng(seed).random((2, 3)) * 5
            x = torch.ones(3, requires_grad=True)
            out = call(x, array)
            out[0].sum().backward()
            answers.append((out, x.grad, array))
        same(answers[1], answers[0])
    if fn is not broken:
        assert len(compiled.entries()) == 1


def test_the_setting():
    import torch._dynamo.config as theirs

    counts = []
    for value in (True, False):
        with theirs.patch(trace_numpy=value):
            cdynamo.reset()
            counts.append(cdynamo.explain(mixed)(torch.ones(3), np.ones((2, 3))).graph_break_count > 0)
    assert counts == [False, True]


def test_arrays_that_share_memory():
    def f(a, b):
        a += 1
        return b * 2

    whole = np.arange(4.0)
    for backend in ("eager", "aot_eager"):
        cdynamo.reset()
        compiled = cdynamo.compile(f, backend=backend)
        np.testing.assert_array_equal(compiled(np.arange(4.0), np.arange(4.0)), np.arange(4.0) * 2)
        expected = f(*(lambda w: (w, w[:]))(whole.copy()))
        np.testing.assert_array_equal(compiled(*(lambda w: (w, w[:]))(whole.copy())), expected)
        np.testing.assert_array_equal(compiled(*(lambda w: (w, w))(whole.copy())), expected)


def test_the_array_itself_comes_back():
    array = np.ones(3)

    def f(a):
        a *= 2
        return a, a.T is a

    given, other = cdynamo.compile(f, backend="eager")(array)
    assert given is array and array[0] == 2 and not other
