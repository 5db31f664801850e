"""Events and their views: counters, logs, explain, reports; config; install."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from graphs import two_layers

import cdynamo
from cdynamo._events import listening, on_event
from cdynamo._explain import Explanation

x = torch.ones(3)


def add_one(x):
    return x + 1


CODE = add_one.__code__
LINE = CODE.co_firstlineno + 1
STACK = [(__file__, LINE, "add_one")]
BREAK = {"code": CODE, "reason": "Call to print", "explanation": "It prints.", "hints": ["Do not."], "context": "print(x)", "stack": STACK}


def program():
    return two_layers(torch.randn(5, 4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))[0]


def test_counters_are_torchs_too():
    from torch._dynamo.utils import counters as theirs

    theirs.clear()
    cdynamo.counters.clear()
    for _ in range(2):
        on_event("start", {"code": CODE})
    on_event("capture", {"code": CODE, "graph": program(), "guards": ["a"], "seconds": 0.1})
    on_event("break", BREAK)
    on_event("skip", {"code": CODE, "reason": "generator", "stack": []})
    for counters in (cdynamo.counters, theirs):
        assert counters["stats"] == collections.Counter(calls_captured=4, unique_graphs=1)
        assert counters["frames"] == collections.Counter(total=2, ok=1)
        assert sum(counters["graph_break"].values()) == 1 and "Call to print" in next(iter(counters["graph_break"]))


def test_explanation():
    found = Explanation()
    with listening(found.record):
        on_event("capture", {"code": CODE, "graph": program(), "guards": lambda: ["type(x) is Tensor"], "seconds": 0.1})
        on_event("break", BREAK)
        on_event("skip", {"code": CODE, "reason": "generator", "stack": STACK})
    on_event("break", BREAK)
    assert (found.graph_count, found.op_count, found.graph_break_count) == (1, 4, 1)
    assert found.ops_per_graph[0][-1] == "sum" and isinstance(found.graphs[0], torch.fx.GraphModule)
    text = str(found)
    assert text.startswith("1 graph, 4 ops, 1 guard, 1 break, 1 skipped frame;")
    for part in ("linear relu linear sum", "Call to print", "Hint: Do not.", f'File "{__file__}", line {LINE}', "return x + 1", "type(x) is Tensor"):
        assert part in text
    assert found.break_reasons[0].user_stack[0].lineno == LINE


def test_explain_runs_once():
    calls = []

    def f(x, y=1):
        calls.append(1)
        return x + y

    found = cdynamo.explain(f)(x, y=2)
    assert isinstance(found, Explanation) and str(found)
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["graph_breaks", "recompiles", "guards", "graph_code"])
def test_logs(name, caplog):
    torch._logging.set_logs(**{name: True})
    logger = cdynamo._logs.logger(name)
    logger.addHandler(caplog.handler)
    try:
        cdynamo.reset()
        on_event("capture", {"code": CODE, "graph": program(), "guards": ["a guard"], "seconds": 0.1})
        on_event("break", BREAK)
        on_event("recompile", {"code": CODE, "failed": ["size changed"]})
        wanted = {"graph_breaks": "Call to print", "recompiles": "size changed", "guards": "a guard", "graph_code": "torch._C._nn.linear"}
        assert wanted[name] in caplog.text
        assert sum(text in caplog.text for text in wanted.values()) == 1
    finally:
        logger.removeHandler(caplog.handler)
        torch._logging.set_logs()


def test_own_log_variable():
    script = """
        import sys
        sys.path.insert(0, "tests/front")
        import stand_in
        from cdynamo._events import on_event
        on_event("break", {"reason": "Call to print", "stack": [("m.py", 3, "f")]})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env={**os.environ, "CDYNAMO_LOGS": "graph_breaks"}
    )
    assert "Call to print" in done.stderr and 'File "m.py", line 3, in f' in done.stderr


def failure(error):
    return {"code": CODE, "error": error, "stage": "capture", "arguments": ["x: Tensor float32 (3,)"], "stack": STACK}


def test_engine_failure(tmp_path):
    try:
        raise KeyError("lost")
    except KeyError as caught:
        error = caught
    with pytest.raises(cdynamo.InternalError, match=r"cdynamo failed on add_one .*KeyError: 'lost'.*report: ") as info:
        on_event("failure", failure(error))
    assert info.value.__cause__ is error
    with cdynamo.config.patch(strict=False):
        with pytest.warns(UserWarning, match="runs eagerly") as seen:
            on_event("failure", failure(error))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            on_event("failure", failure(error))
    path = str(seen[0].message).split("report: ")[1].removesuffix(". The function runs eagerly.")
    with open(path) as file:
        text = file.read()
    for part in ("add_one", "KeyError: 'lost'", "x: Tensor float32 (3,)", torch.__version__, "return x + 1", "capture", "raise KeyError"):
        assert part in text
    with cdynamo.config.patch(strict=False, report_directory="/proc/nowhere"):
        cdynamo.reset()
        with pytest.warns(UserWarning, match="cdynamo-reports"):
            on_event("failure", failure(error))


def test_unsupported():
    from torch._dynamo.exc import FailOnRecompileLimitHit, Unsupported

    from cdynamo._errors import recompile_limit_hit, unsupported

    error = unsupported(BREAK)
    assert isinstance(error, Unsupported) and error.gb_type == "Call to print" and error.real_stack[0].lineno == LINE
    for part in (
        "Call to print\n",
        "Explanation: It prints.",
        "Hint: Do not.",
        "Developer debug context: print(x)",
        "from user code:",
        f"line {LINE}",
    ):
        assert part in str(error)
    assert isinstance(recompile_limit_hit({"failed": ["a"]}), FailOnRecompileLimitHit)


def test_config():
    import torch._dynamo.config as theirs

    assert cdynamo.config.recompile_limit == theirs.recompile_limit
    with theirs.patch(recompile_limit=3):
        assert cdynamo.config.recompile_limit == 3 and cdynamo.config.cache_size_limit == 3
        with cdynamo.config.patch(recompile_limit=5):
            assert cdynamo.config.recompile_limit == 5
        assert cdynamo.config.recompile_limit == 3
    with pytest.raises(AttributeError, match="has no setting 'nope'"):
        cdynamo.config.nope = 1
    with pytest.raises(AttributeError):
        cdynamo.config.nope  # noqa: B018
    assert "strict" in dir(cdynamo.config) and "strict=True" in repr(cdynamo.config)


@pytest.fixture
def installed():
    cdynamo.install()
    yield
    cdynamo.uninstall()


def test_install(installed):
    import torch._dynamo

    assert type(torch.compile(add_one, backend="eager")) is cdynamo._C.CompiledFunction
    assert torch.equal(torch.compile(add_one, backend="eager", name="n", isolate_recompiles=True)(x), x + 1)
    assert torch.equal(torch.compiler.compile(add_one, backend="eager")(x), x + 1)
    assert torch.equal(torch._dynamo.optimize("eager")(add_one)(x), x + 1)
    assert torch.equal(torch._dynamo.optimize("eager", nopython=True)(add_one)(x), x + 1)
    assert torch.equal(torch._dynamo.optimize_assert("eager")(add_one)(x), x + 1)
    assert torch._dynamo.optimize(disable=True)(add_one) is add_one
    module = torch.nn.Linear(3, 3)
    module.compile(backend="eager")
    assert isinstance(module._compiled_call_impl, cdynamo._C.CompiledFunction)
    assert module(x).shape == (3,)
    assert isinstance(torch.compile(module, backend="eager"), torch._dynamo.eval_frame.OptimizedModule)
    assert isinstance(torch._dynamo.explain(add_one)(x), Explanation)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nope'"):
        torch.compile(add_one, nope=1)
    torch._dynamo.reset()
    torch.compiler.reset()
    cdynamo.install()


def test_uninstall():
    import torch._dynamo

    before = torch.compile, torch._dynamo.optimize, torch._dynamo.reset, torch._dynamo.eval_frame.OptimizedModule
    cdynamo.install()
    assert torch.compile is not before[0]
    cdynamo.uninstall()
    cdynamo.uninstall()
    assert before == (torch.compile, torch._dynamo.optimize, torch._dynamo.reset, torch._dynamo.eval_frame.OptimizedModule)


def test_install_before_dynamo():
    script = """
        import sys
        sys.path.insert(0, "tests/front")
        import stand_in
        import cdynamo, torch
        cdynamo.install()
        assert "torch._dynamo" not in sys.modules
        import torch._dynamo
        assert torch._dynamo.optimize.__module__ == "cdynamo._install"
        assert torch._dynamo.__spec__.name == "torch._dynamo" and torch._dynamo.__file__
        assert torch._dynamo.optimize("eager")(lambda x: x + 1)(torch.ones(1)).item() == 2
        cdynamo.uninstall()
        assert torch._dynamo.optimize.__module__ == "torch._dynamo.eval_frame"
        print("fine")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


def test_reset_reaches_the_engine(installed, monkeypatch):
    calls = []
    monkeypatch.setattr(cdynamo._C, "reset", lambda: calls.append(1))
    torch._dynamo.reset()
    assert calls
    del calls[:]
    cdynamo.reset()
    assert len(calls) == 1
