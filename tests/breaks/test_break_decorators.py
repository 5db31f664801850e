"""Smoke: what users mark functions with, and what it does to the capture around them."""

import pytest
import torch
from harness import Breaks, CountingBackend, Setup, ext, note, t

import cdynamo

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


@torch.compiler.disable
def disabled(v):
    note("disabled")
    return v * 3


@torch.compiler.disable(recursive=False)
def disabled_alone(v):
    note("alone")
    return called(v)


def called(v):
    return v * 3 + 1


@torch.compiler.disable(reason="for the test")
def disabled_with_reason(v):
    return v * 3


@cdynamo.disable
def disabled_by_us(v):
    return v * 3


@torch._dynamo.allow_in_graph
def allowed(v):
    return v * 3


@torch._dynamo.nonstrict_trace
def nonstrict(v):
    return v * 3


@torch._dynamo.assume_constant_result
def constant():
    return 3


def skipping(v):
    torch._dynamo.skip_frame()
    return v * 3


def stepping(v):
    v = v + 1
    torch._dynamo.step_unsupported()
    return v * 3


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quiet = torch.compiler.disable(torch.nn.Linear(3, 3))

    def forward(self, x):
        return self.quiet(x + 1) * 2


ROWS = {
    "disable": ("disabled(x + 1) * 2", dict(share=0.6, reason="Disabled")),
    "disable_alone": ("disabled_alone(x + 1) * 2", dict(graphs=(2, 3), share=0.5)),
    "disable_reason": ("disabled_with_reason(x + 1) * 2", dict(share=0.6, reason="Disabled")),
    "disable_ours": ("disabled_by_us(x + 1) * 2", dict(share=0.6, reason="Disabled")),
    "disable_inline": ("torch.compiler.disable(lambda v: v * 3)(x + 1) * 2", dict(graphs=None, share=0.0, settled=3)),
    "graph_break": ("y = x + 1\ntorch._dynamo.graph_break()\nreturn y * 2", dict(reason="UserBreak")),
    "graph_break_message": ("y = x + 1\ntorch._dynamo.graph_break('why')\nreturn y * 2", dict(reason="UserBreak")),
    "skip_frame_in_callee": ("skipping(x + 1) * 2", dict(graphs=(2, 3), share=0.6)),
    "step_unsupported": ("stepping(x + 1) * 2", dict(graphs=(1, 3), share=0.0)),
    "allow_in_graph": ("allowed(x + 1) * 2", dict(graphs=1, breaks=0)),
    "nonstrict_trace": ("nonstrict(x + 1) * 2", dict(graphs=1, breaks=0)),
    "assume_constant_result": ("y = x + 1\nreturn y * constant()", dict(graphs=1, breaks=0)),
    "is_compiling": (
        """
        y = x + 1
        ext(y)
        return y * (2 if torch.compiler.is_compiling() else 2)
        """,
        dict(),
    ),
}
breaks.table(ROWS, globals())


@scenario(share=0.0)
def disabled_module():
    torch.manual_seed(1)
    return Setup(Module(), lambda: (t(2, 3),))


test = breaks.as_test()


def broken(x):
    y = x + 1
    ext(y)
    return y * 2


def test_fullgraph_refuses():
    with pytest.raises(torch._dynamo.exc.Unsupported) as info:
        cdynamo.compile(broken, backend="eager", fullgraph=True)(t(3))
    assert "broken" in str(info.value)


def test_skip_frame_runs_eagerly():
    def fn(x):
        y = x + 1
        torch._dynamo.skip_frame()
        return y * 2

    backend = CountingBackend()
    call = cdynamo.compile(fn, backend=backend)
    for _ in range(3):
        assert torch.equal(call(t(3)), (t(3) + 1) * 2)
    assert backend.graphs == []


def test_stance_force_eager():
    backend = CountingBackend()
    call = cdynamo.compile(broken, backend=backend)
    with cdynamo.set_stance("force_eager"):
        assert torch.equal(call(t(3)), (t(3) + 1) * 2)
        assert backend.graphs == []
    assert torch.equal(call(t(3)), (t(3) + 1) * 2)
    assert len(backend.graphs) == 2


def test_error_on_graph_break():
    call = cdynamo.compile(broken, backend="eager")
    with pytest.raises(torch._dynamo.exc.Unsupported), torch._dynamo.error_on_graph_break(True):
        call(t(3))


def test_disable_of_compiled_function():
    backend = CountingBackend()
    call = torch.compiler.disable(cdynamo.compile(broken, backend=backend))
    assert torch.equal(call(t(3)), (t(3) + 1) * 2)
    assert backend.graphs == []
