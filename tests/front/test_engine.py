"""The front with the engine behind it: what a capture, a break, a recompile look like from outside."""

from __future__ import annotations

import os

import pytest
import stand_in
import torch

import cdynamo

pytestmark = pytest.mark.skipif(stand_in.load() is not None and not hasattr(cdynamo._C, "decode"), reason="no engine in this build")

x = torch.ones(3)


def sums(x, y):
    return (x.sin() + y).sum()


def breaking(x):
    os.write(1, b"side effect\n")
    return x + 1


def test_counts_and_values():
    cdynamo.counters.clear()
    f = cdynamo.compile(sums, backend="eager", fullgraph=True)
    assert torch.equal(f(x, 2.0), sums(x, 2.0)) and torch.equal(f(x, 2.0), sums(x, 2.0))
    assert cdynamo.counters["stats"] == {"calls_captured": 3, "unique_graphs": 1}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_backends(backend):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model(x).sum().backward()
    want = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    out = cdynamo.compile(model, backend=backend, fullgraph=True)(x)
    torch.testing.assert_close(out, model(x))
    out.sum().backward()
    for a, p in zip(want, model.parameters()):
        torch.testing.assert_close(a, p.grad)


def test_explain():
    found = cdynamo.explain(sums)(x, 2.0)
    assert (found.graph_count, found.op_count, found.graph_break_count) == (1, 3, 0), str(found)
    assert found.out_guards and [getattr(op, "__name__", op) for op in found.ops_per_graph[0]] == ["sin", "add", "sum"]
    broken = cdynamo.explain(breaking)(x)
    assert broken.break_reasons and any(frame.name == "breaking" for frame in broken.break_reasons[0].user_stack), str(broken)


def test_fullgraph_says_why(capfd):
    from torch._dynamo.exc import Unsupported

    with pytest.raises(Unsupported) as info:
        cdynamo.compile(breaking, backend="eager", fullgraph=True)(x)
    assert "from user code:" in str(info.value) and 'os.write(1, b"side effect' in str(info.value) and "Hint:" in str(info.value)
    assert torch.equal(cdynamo.compile(breaking, backend="eager")(x), x + 1)
    assert capfd.readouterr().out == "side effect\n"


def test_recompiles_and_limit(caplog):
    seen = []
    f = cdynamo.compile(lambda x, n: x + n, backend="eager", dynamic=False)
    with cdynamo._events.listening(lambda kind, payload: seen.append((kind, payload))), cdynamo.config.patch(recompile_limit=2):
        for shape in (1, 2, 3, 4):
            assert f(torch.ones(shape), 1).shape == (shape,)
    kinds = [kind for kind, _ in seen]
    assert kinds.count("capture") == 2 and "size" in next(p["failed"][0] for k, p in seen if k == "recompile")
    assert "hit config.recompile_limit (2)" in caplog.text


def test_installed():
    from torch._dynamo.testing import CompileCounter, CompileCounterWithBackend

    cdynamo.install()
    try:
        counter = CompileCounter()
        f = torch.compile(sums, backend=counter, fullgraph=True)
        assert torch.equal(f(x, 2.0), sums(x, 2.0)) and (counter.frame_count, counter.op_count) == (1, 3)
        torch._dynamo.reset()
        f(x, 2.0)
        assert counter.frame_count == 2
        counter = CompileCounterWithBackend("aot_eager")
        assert torch.equal(torch._dynamo.optimize(counter)(sums)(x, 2.0), sums(x, 2.0)) and counter.frame_count == 1
        with torch.compiler.set_stance("force_eager"):
            g = torch.compile(sums, backend=counter)
            g(x, 2.0)
            assert counter.frame_count == 1
        g(x, 3.0)
        assert counter.frame_count == 2
    finally:
        cdynamo.uninstall()


def test_backend_failure_reaches_the_caller():
    from torch._dynamo.exc import BackendCompilerFailed

    def broken(gm, inputs):
        raise ValueError("no luck")

    with pytest.raises(BackendCompilerFailed, match="no luck"):
        cdynamo.compile(sums, backend=broken)(x, 2.0)
    with pytest.raises(BackendCompilerFailed, match="did not return callable"):
        cdynamo.compile(sums, backend=lambda gm, inputs: None)(x, 2.0)


def test_gives_inputs_back_to_the_collector():
    import gc
    import weakref

    model = torch.nn.Linear(3, 3)
    data = torch.ones(3)
    f = cdynamo.compile(model, backend=lambda gm, inputs: (gm.graph.lint(), gm.forward)[1])
    f(data)
    refs = weakref.ref(model), weakref.ref(data)
    del model, data, f
    gc.collect()
    assert refs[0]() is None and refs[1]() is None
