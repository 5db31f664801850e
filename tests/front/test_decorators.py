"""Decorators and controls, with torch's meaning: cdynamo's own, and torch's."""

from __future__ import annotations

import operator
import os

import pytest
import stand_in
import torch

import cdynamo
from cdynamo._events import listening

pytestmark = pytest.mark.skipif(stand_in.load() is not None and not hasattr(cdynamo._C, "decode"), reason="no engine in this build")

x = torch.ones(3)


@pytest.fixture(params=["cdynamo", "torch"])
def api(request):
    """The same names in both packages."""
    if request.param == "cdynamo":
        yield cdynamo
    else:
        import torch._dynamo

        cdynamo.install()
        yield torch._dynamo
        cdynamo.uninstall()


class Watched:
    """Compiles and counts what the engine says."""

    def __init__(self, fn, backend="eager", **options):
        self.graphs, self.breaks, self.recompiles = [], [], 0
        self.fn = cdynamo.compile(fn, backend=backend, **options)

    def __call__(self, *args):
        with listening(self.record):
            return self.fn(*args)

    def record(self, kind, payload):
        if kind == "capture" and payload["graph"] is not None:
            self.graphs.append([getattr(n[1], "__name__", str(n[1])) for n in payload["graph"].describe(False) if n[0].startswith("call")])
        elif kind == "break":
            self.breaks.append((payload["reason"], payload["context"]))
        self.recompiles += kind == "recompile"


def not_traceable(x, y=1):
    os.getpid()
    return x * 2 + y, [x + 1, {"k": x}]


# ---- controls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "reason"), [("graph_break", "UserBreak"), ("skip_frame", "UserSkip"), ("step_unsupported", "UserStep")])
def test_controls(api, name, reason):
    control = getattr(api, name)

    def f(x):
        x = x + 1
        control("because")
        return x * 2

    w = Watched(f)
    assert torch.equal(w(x), f(x)) and control() is None
    assert w.breaks[0][0] == reason and "because" in w.breaks[0][1]


def test_break_is_an_error_under_fullgraph(api):
    from torch._dynamo.exc import Unsupported

    def f(x):
        api.graph_break()
        return x + 1

    with pytest.raises(Unsupported, match="graph_break"):
        Watched(f, fullgraph=True)(x)


def test_is_compiling(api):
    assert torch.equal(Watched(lambda x: x + 1 if api.is_compiling() else x + 2, fullgraph=True)(x), x + 1)
    assert not api.is_compiling()


# ---- disable -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recursive", [True, False])
def test_disable_says_why(api, recursive):
    @api.disable(recursive=recursive, reason="it is slow")
    def g(x):
        return x * 2

    w = Watched(lambda x: g(x + 1))
    assert torch.equal(w(x), (x + 1) * 2)
    assert w.breaks[0][0] == "Disabled" and "it is slow" in w.breaks[0][1]


def test_disable_forms(api):
    class A:
        @api.disable
        def method(self, x):
            return x * 2

        def free(self, x):
            return x * 3

    @api.disable
    class C:
        def __init__(self, n):
            self.n = n

        def __call__(self, x):
            return x + self.n

    @api.disable
    class M(torch.nn.Module):
        def forward(self, x):
            return x * 4

    a, c, m, linear = A(), C(1), M(), torch.nn.Linear(3, 3)
    forms = [a.method, api.disable(a.free), c, m, api.disable(linear), api.disable(torch.sin), api.disable(Watched(torch.cos).fn)]
    for form in forms:
        cdynamo.reset()
        w = Watched(lambda x, form=form: form(x) + 1)
        assert torch.equal(w(x), form(x) + 1)
        assert w.breaks and w.breaks[0][0] == "Disabled", (form, w.breaks)
    with pytest.raises(AssertionError):
        api.disable(3)


def test_disabled_by_the_environment(monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    assert cdynamo.compile(not_traceable, backend="eager") is not_traceable


# ---- what happens to single functions ----------------------------------------------------------------------------------


def test_allow_in_graph(api):
    def opaque(x, y=1):
        return not_traceable(x, y)

    @api.allow_in_graph
    def ends_in_(x):
        os.getpid()
        return x + 1

    assert api.allow_in_graph(opaque) is opaque and api.allow_in_graph([opaque]) == [opaque]

    def f(x):
        a, (b, c) = opaque(x, y=2)
        return a + b + c["k"] + ends_in_(x), x

    for backend in ("eager", "aot_eager"):
        w = Watched(f, backend=backend, fullgraph=True)
        torch.testing.assert_close(w(x), f(x))
        assert w.graphs[0][0] == "opaque" and "ends_in_" in w.graphs[0]
    with pytest.raises(AssertionError):
        api.allow_in_graph(3)


def test_allowed_function_that_returns_a_number(api):
    @api.allow_in_graph
    def counts(x):
        return x + 1, len(os.listdir("/"))

    def f(x):
        y, n = counts(x)
        return y * n

    w = Watched(f)
    assert torch.equal(w(x), f(x)) and "more than tensors" in w.breaks[0][1]


def test_allowed_function_that_raises(api):
    @api.allow_in_graph
    def bad(x):
        raise ValueError("no")

    def f(x):
        try:
            return bad(x)
        except ValueError:
            return x + 1

    assert torch.equal(Watched(f)(x), x + 1)


def test_disallow_in_graph(api):
    def f(x):
        return torch.sub(x + 1, 1)

    api.disallow_in_graph(torch.sub)
    try:
        w = Watched(f)
        assert torch.equal(w(x), f(x)) and "disallow_in_graph" in w.breaks[0][1]
    finally:
        api.allow_in_graph(torch.sub)
    assert torch.equal(Watched(f, fullgraph=True)(x), f(x))
    with pytest.raises(Exception, match="already allowed"):
        api.disallow_in_graph(lambda x: x)


def test_nonstrict_trace(api):
    @api.nonstrict_trace
    def g(pair, scale):
        api.graph_break()
        os.getpid()
        return {"sum": pair[0] + pair[1] * scale}

    def f(x):
        return g((x, x + 1), 2)["sum"] * 2

    for backend in ("eager", "aot_eager"):
        assert torch.equal(Watched(f, backend=backend, fullgraph=True)(x), f(x))
    leaf = x.clone().requires_grad_()
    cdynamo.compile(f, backend="aot_eager", fullgraph=True)(leaf).sum().backward()
    assert torch.equal(leaf.grad, torch.full((3,), 6.0))


def test_forbid_in_graph(api):
    @api.forbid_in_graph
    def g(x):
        return x

    assert torch.equal(g(x), x)
    with pytest.raises(AssertionError, match="Attempt to trace forbidden callable"):
        Watched(lambda x: g(x) + 1)(x)


def test_assume_constant_result(api):
    calls = []

    @api.assume_constant_result
    def numbers(n, scale=1.0):
        calls.append(n)
        return torch.full([n], 13.0 * scale)

    @api.assume_constant_result
    def first_is_one(y):
        return y[0].item() == 1

    class A:
        def __init__(self):
            self.n = 5

        @api.assume_constant_result
        def get(self):
            os.getpid()
            return self.n

    a = A()

    def f(x, y):
        return (numbers(x.size(0), scale=2.0) * x if first_is_one(y) else x) + a.get()

    w = Watched(f, fullgraph=True)
    want = f(x, torch.tensor([1]))
    calls.clear()
    assert torch.equal(w(x, torch.tensor([1])), want) and torch.equal(w(x, torch.tensor([1])), want)
    assert calls == [3]


def test_substitute_in_graph(api):
    with pytest.raises(TypeError, match="Signature mismatch"):

        @api.substitute_in_graph(operator.length_hint)
        def wrong(a, b, c):
            return 1

    if hasattr(operator.length_hint, "__wrapped__") or (api is not cdynamo and not _free_in_torch(operator.length_hint)):
        pytest.skip("torch has its own")

    @api.substitute_in_graph(operator.length_hint)
    def traced(obj, default=0, /):
        return len(obj) + 100

    def f(x):
        return x + operator.length_hint([1, 2]) + traced([1])

    try:
        assert torch.equal(Watched(f, fullgraph=True)(x), x + 102 + 101)
        assert torch.equal(f(x), x + 2 + 1)
    finally:
        from cdynamo._decorators import marks

        marks.pop(id(operator.length_hint), None)


def _free_in_torch(function):
    from torch._dynamo.trace_rules import _polyfilled_function_ids

    return id(function) not in _polyfilled_function_ids


# ---- breaks that are errors --------------------------------------------------------------------------------------------


def test_error_on_graph_break(api):
    from torch._dynamo.exc import Unsupported

    def broken(x):
        x = x + 1
        api.graph_break()
        return x * 2

    def inside(x):
        with api.error_on_graph_break(True):
            return broken(x)

    def outside(x):
        with api.error_on_graph_break(True):
            x = x + 1
        api.graph_break()
        return x

    def allowed_again(x):
        with api.error_on_graph_break(True), api.error_on_graph_break(False):
            return broken(x)

    for f in (inside, api.error_on_graph_break(True)(broken)):
        with pytest.raises(Unsupported):
            Watched(f)(x)
    for f in (outside, allowed_again, api.error_on_graph_break(False)(broken)):
        w = Watched(f)
        assert torch.equal(w(x), f(x)) and w.breaks
    with api.error_on_graph_break(True), pytest.raises(Unsupported):
        Watched(broken)(x)
    with pytest.raises(Unsupported):
        Watched(api.error_on_graph_break(False)(broken), fullgraph=True)(x)


# ---- stances -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def told():
    """How a call was run: captured (+1) or eagerly (+2)."""
    made = cdynamo.compile(lambda x, n: x + n + (1 if torch.compiler.is_compiling() else 2), backend="eager", dynamic=False)
    yield lambda n=0: int(made(x, n)[0]) - n - 1
    cdynamo.set_stance("default")


def test_set_stance_forms(api, told):
    @api.set_stance("force_eager")
    def decorated():
        return told()

    assert told() == 1
    assert decorated() == 2 and told() == 1
    with api.set_stance("force_eager"):
        assert told() == 2
    assert told() == 1
    api.set_stance("force_eager")
    assert told() == 2
    api.set_stance("default")
    assert told() == 1
    with pytest.raises(RuntimeError, match="invalid"):
        api.set_stance("lazy")
    with pytest.raises(RuntimeError, match="force_backend"):
        api.set_stance("force_eager", force_backend="eager")
    assert told() == 1


def test_set_stance_recompiles(api, told):
    with api.set_stance("eager_on_recompile"):
        assert told(0) == 2
    assert told(0) == 1
    with api.set_stance("eager_on_recompile", skip_guard_eval_unsafe=True):
        assert told(0) == 1 and told(1) == 0  # one capture: its guards are not run, and it adds 0
    with api.set_stance("fail_on_recompile"):
        assert told(0) == 1
        with pytest.raises(RuntimeError, match=r"Detected recompile when torch.compile stance is 'fail_on_recompile'[^$]*guard failure"):
            told(1)
    assert told(1) == 1


def test_set_stance_eager_then_compile(api, told):
    with api.set_stance("eager_then_compile"):
        assert [told(), told(), told()] == [2, 1, 1]


def test_set_stance_with_other_backends(api):
    import torch._dynamo

    seen = []

    def backend(gm, inputs):
        seen.append("forced")
        return gm.forward

    def usual(gm, inputs):
        seen.append("usual")
        return gm.forward

    f = cdynamo.compile(lambda x: x + 1, backend=usual)
    with api.set_stance("default", force_backend=backend):
        f(x), f(x)
    assert seen == ["forced"]
    f(x)
    assert seen == ["forced", "usual"]
    f.reset()
    with api.set_stance("aot_eager_then_compile"):
        torch._dynamo.utils.counters.clear()
        f(x)
        assert seen == ["forced", "usual"] and torch._dynamo.utils.counters["aot_autograd"]["ok"] == 1
        f(x)
    assert seen == ["forced", "usual", "usual"]


def test_set_stance_in_compiled_code(api):
    def inside(x):
        with api.set_stance("force_eager"):
            return x + 1

    for f in (inside, api.set_stance("force_eager")(lambda x: x + 1)):
        with pytest.raises(AssertionError, match="Attempt to trace forbidden callable"):
            cdynamo.compile(f, backend="eager")(x)


def test_set_stance_in_an_eager_part(api):
    def f(x):
        api.skip_frame()
        with api.set_stance("force_eager"):
            return x + 1

    with pytest.raises(RuntimeError, match=r"set_stance in a torch.compile region"):
        cdynamo.compile(f, backend="eager")(x)
    assert torch.equal(cdynamo.compile(lambda x: x + 1, backend="eager")(x), x + 1)


# ---- recompiles, errors, run -------------------------------------------------------------------------------------------


def test_error_on_recompile():
    from torch._dynamo.exc import RecompileError

    f = cdynamo.compile(lambda x, n: x + n, backend="eager")
    f(x, "1" and 1)
    with cdynamo.config.patch(error_on_recompile=True), pytest.raises(RecompileError, match="guard failure"):
        f(x.double(), 1)
    assert f(x.double(), 1).dtype == torch.float64


def test_suppress_errors():
    from torch._dynamo.exc import BackendCompilerFailed

    calls = []

    def backend(gm, inputs):
        calls.append(1)
        raise ValueError("no luck")

    with cdynamo.config.patch(suppress_errors=True):
        f = cdynamo.compile(lambda x: x + 1, backend=backend)
        assert torch.equal(f(x), x + 1) and torch.equal(f(x), x + 1) and calls == [1]
        with pytest.raises(BackendCompilerFailed):
            cdynamo.compile(lambda x: x + 1, backend=backend, fullgraph=True)(x)


def test_fail_on_recompile_limit_hit():
    from torch._dynamo.exc import FailOnRecompileLimitHit

    f = cdynamo.compile(lambda x, n: x + n, backend="eager", dynamic=False)
    with cdynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        f(x, 1.5)
        with pytest.raises(FailOnRecompileLimitHit):
            f(x, 2.5)


def test_run_makes_no_captures(api):
    w = Watched(lambda x, n: x + n)
    only = api.run(w)
    assert torch.equal(only(x, 1), x + 1) and not w.graphs
    w(x, 1)
    assert torch.equal(only(x, 1), x + 1) and torch.equal(only(x, 2), x + 2) and len(w.graphs) == 1
    assert callable(api.run()(w))


# ---- sizes, addresses --------------------------------------------------------------------------------------------------


def test_marks_on_tensors(api):
    y = torch.ones(3, 4)
    api.mark_dynamic(y, 0)
    api.mark_static(y, [1])
    assert y._dynamo_dynamic_indices == {0} and y._dynamo_static_indices == {1}

    def f(y):
        api.mark_static(y)
        return y + 1

    assert torch.equal(Watched(f, fullgraph=True)(y), y + 1)

    class M(torch.nn.Module):
        pass

    assert api.mark_static(M) is M and M._dynamo_marked_static
    with pytest.raises(TypeError):
        cdynamo.mark_dynamic(3, 0)


def test_mark_static_address():
    import torch._dynamo

    seen = []

    def backend(gm, inputs):
        seen.append(next(n for n in gm.graph.nodes if n.op == "placeholder").meta["tensor_dict"])
        return gm.forward

    f = cdynamo.compile(lambda x: x + 1, backend=backend)
    guarded, free = torch.ones(2), torch.ones(2)
    torch._dynamo.mark_static_address(guarded, guard=True)
    torch._dynamo.mark_static_address(free)
    f(guarded), f(guarded), f(free), f(torch.ones(2))
    assert seen == [{"_dynamo_static_input_type": "guarded"}, {"_dynamo_static_input_type": "unguarded"}]


# ---- guard filters -----------------------------------------------------------------------------------------------------

SCALE = 2


def filtered(fn, filter_fn):
    return Watched(fn, options={"guard_filter_fn": filter_fn})


def test_guard_filter_sees_the_guards():
    seen = []

    def keep_all(entries):
        seen.extend(entries)
        return [True] * len(entries)

    f = filtered(lambda x, n: x * n * SCALE, keep_all)
    f(x, 2), f(x, 3)
    assert len(f.graphs) == 2
    by_name = {(e.name, e.guard_type): e for e in seen}
    tensor, number, scale = by_name["L['x']", "TENSOR_MATCH"], by_name["L['n']", "EQUALS_MATCH"], by_name["G['SCALE']", "EQUALS_MATCH"]
    assert tensor.value is x and number.has_value and (scale.is_global, tensor.is_global) == (True, False)
    assert any(e.guard_type == "GLOBAL_STATE" for e in seen)


def test_torchs_guard_filters(monkeypatch):
    f = filtered(lambda x, n: x * n * SCALE, torch.compiler.skip_guard_on_globals_unsafe)
    assert float(f(x, 2)[0]) == 4
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert float(f(x, 2)[0]) == 4 and float(f(x, 3)[0]) == 15

    g = filtered(lambda x, n: x * n, torch.compiler.keep_tensor_guards_unsafe)
    assert float(g(x, 2)[0]) == 2 and float(g(x, 3)[0]) == 2 and g(x.double(), 3).dtype == torch.float64
    assert len(g.graphs) == 2

    h = filtered(lambda x, n: x * n, torch.compiler.skip_all_guards_unsafe)
    assert float(h(x, 2)[0]) == 2 and h(x.double(), 3).dtype == torch.float64 and len(h.graphs) == 1

    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 3))
    module.eval()
    for skip in (torch.compiler.skip_guard_on_all_nn_modules_unsafe, torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe):
        c = filtered(lambda x: module[1](x), skip)
        c(x)
        module[1].extra = 1
        c(x)
        assert len(c.graphs) == 1


def test_guard_filter_that_is_wrong():
    with pytest.raises(ValueError, match="one flag for each guard"):
        filtered(lambda x: x + 1, lambda entries: [True])(x)
