"""What users read: reasons of breaks, exceptions, logs, counters, explain; beside torch's own forms."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import logging
import pathlib
import re
import subprocess
import sys
import textwrap
import typing

import pytest
import stand_in
import torch

import cdynamo

pytestmark = pytest.mark.skipif(stand_in.load() is not None and not hasattr(cdynamo._C, "decode"), reason="no engine in this build")

ROOT = pathlib.Path(__file__).parents[2]
REASONS = {row["reason"]: row for row in cdynamo._C.break_reasons()} if hasattr(cdynamo._C, "break_reasons") else {}
x = torch.ones(3)


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    cdynamo.counters.clear()
    yield
    cdynamo.reset()


@contextlib.contextmanager
def logged(name, level=True):
    """The records of an artifact, seen where torch's handlers sit."""
    records = []

    class Seen(logging.Handler):
        def emit(self, record):
            record.compile_id = str(torch._guards.CompileContext.current_compile_id())
            records.append(record)

    handler = Seen()
    torch._logging.set_logs(**{name: level})
    logging.getLogger("torch._dynamo").addHandler(handler)
    try:
        yield records
    finally:
        logging.getLogger("torch._dynamo").removeHandler(handler)
        torch._logging.set_logs()


def texts(records):
    return [record.getMessage() for record in records]


# ---- the table ---------------------------------------------------------------------------------------------------------


def test_every_reason_is_complete():
    ids = [row["id"] for row in REASONS.values()]
    assert len(set(ids)) == len(ids) == len(REASONS)
    for row in REASONS.values():
        assert re.fullmatch(r"CD\d{4}", row["id"]) and row["title"] and row["explanation"].endswith((".", "`")) and row["example"]
        assert row["hints"] and all(hint.endswith((".", ")", ":")) for hint in row["hints"]), row


def test_every_reason_is_used():
    source = "\n".join(path.read_text() for path in (ROOT / "csrc").rglob("*.cpp"))
    generic = {"UnsupportedCall", "UnsupportedAttribute", "UnsupportedMutation"}
    assert {name for name in REASONS if f"BreakReason::{name}" not in source} <= generic


def test_page_is_of_this_table():
    spec = importlib.util.spec_from_file_location("make_breaks", ROOT / "docs" / "make_breaks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "breaks.md").read_text() == module.page(), "run docs/make_breaks.py"


def branch(x):
    if x.sum() > 0:
        return x + 1
    return x


def item(x):
    return x + x.to(torch.complex64).sum().item()  # complex numbers are not captured, whatever the setting


def user_break(x):
    y = x + 1
    torch._dynamo.graph_break("here")
    return y * 2


@torch.compiler.disable
def disabled(x):
    return x


def calls_disabled(x):
    return disabled(x) + 1


def mask(x):
    return x[x > 0]


@pytest.fixture(autouse=True)
def output_breaks():
    with cdynamo.config.patch(defer_output=False):
        yield


def prints(x):
    print("seen")
    return x + 1


def class_inside(x):
    return x + 1, type("Inside", (typing.Protocol,), {})


def backward(x):
    x.sum().backward()
    return x


def indexed(x):
    return [1, 2][x.sum().int()] + x


def user_skip(x):
    torch._dynamo.skip_frame()
    return x + 1


def set_data(x):
    x.data = x + 1
    return x


CASES = {
    "DataDependentBranch": (branch, "Data-dependent branching"),
    "ScalarRead": (item, "Unsupported Tensor.item() call with capture_scalar_outputs=False"),
    "UserBreak": (user_break, "Call to `torch._dynamo.graph_break()`"),
    "Disabled": (calls_disabled, "Skip calling `torch.compiler.disable()`d function"),
    "DataDependentShape": (mask, "Dynamic shape operator"),
    "Output": (prints, "Failed to trace builtin operator"),
    "ClassStatement": (class_inside, "LOAD_BUILD_CLASS bytecode not supported"),
    "AutogradMethod": (backward, "Unsupported Tensor.backward() call"),
    "TensorAsIndex": (indexed, "unsupported index(Tensor)"),
    "UserSkip": (user_skip, "Call to `torch._dynamo.skip_frame()`"),
    "TensorAttributeWrite": (set_data, "Failed to set tensor attribute"),
}


@pytest.mark.parametrize("name", CASES)
def test_unsupported_in_sections(name):
    from torch._dynamo.exc import Unsupported

    function, title = CASES[name]
    with pytest.raises(Unsupported) as info:
        cdynamo.compile(function, backend="eager", fullgraph=True)(torch.ones(3))
    row, text = REASONS[name], str(info.value)
    hints = "".join(rf"\n  Hint: {re.escape(hint)}" for hint in row["hints"])
    head = rf"{re.escape(title)}\n  Explanation: {re.escape(row['explanation'])}{hints}\n\n"
    head += rf"  Developer debug context: .+\n\n For more details about this graph break, see docs/breaks.md#{row['id'].lower()}"
    assert re.match(head, text), text
    assert info.value.gb_type == title == row["title"]
    line = info.value.real_stack[-1].lineno
    assert f'\n\nfrom user code:\n   File "{__file__}", line {line}, in {function.__name__}\n    ' in text
    assert function.__code__.co_firstlineno < line


def test_titles_are_torchs():
    """Most titles are the gb_type of torch's registry, so that who greps for one finds both."""
    import json

    registry = json.loads((pathlib.Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json").read_text())
    theirs = {entry["Gb_type"] for entries in registry.values() for entry in entries}
    for name in ("DataDependentBranch", "UserBreak", "UserSkip", "UnsupportedContextManager", "UnknownFunction", "BuiltinCall", "ScalarRead"):
        assert REASONS[name]["title"] in theirs
    assert sum(row["title"] in theirs for row in REASONS.values()) >= 40


def test_message_of_a_break_asked_for():
    from torch._dynamo.exc import Unsupported

    with pytest.raises(Unsupported, match=r"Developer debug context: .*Message: here"):
        cdynamo.compile(user_break, backend="eager", fullgraph=True)(x)


# ---- logs --------------------------------------------------------------------------------------------------------------


def outer(x):
    return prints(x) + 1


def test_graph_breaks_log(capsys):
    with logged("graph_breaks") as records:
        cdynamo.compile(outer, backend="eager")(x)
    first = records[0]
    line = prints.__code__.co_firstlineno + 1
    text = first.getMessage()
    assert text.startswith(f"Graph break in user code at {__file__}:{line}\nGraph Break Reason: Failed to trace builtin operator\n  Explanation: ")
    assert first.compile_id == "0/0"
    trace = text.split("User code traceback:\n")[1]
    assert "in test_graph_breaks_log" in trace and trace.index("in outer") < trace.index("in prints") and '    print("seen")' in trace
    assert "cdynamo/_" not in trace


def test_duplicate_break_is_said_once(capsys):
    with logged("graph_breaks") as records:
        cdynamo.compile(outer, backend="eager")(x)
        said = len(records)
        cdynamo.compile(prints, backend="eager")(x)
    again = texts(records)[said:]
    assert again and all(text.startswith("Graph break (user stack suppressed due to duplicate graph break) in user code at") for text in again)
    assert not any("User code traceback" in text for text in again)
    assert list(cdynamo.counters["graph_break"].values()) == [len(records)]


def scaled(x, k):
    return x.sin() + k


def test_recompiles_log():
    compiled = cdynamo.compile(scaled, backend="eager", dynamic=False)
    with logged("recompiles") as records:
        compiled(x, 1)
        assert not records
        compiled(x, "a" and 2.5)
        compiled(torch.ones(4), 2.5)
    first = scaled.__code__.co_firstlineno
    assert [record.compile_id for record in records] == ["0/1", "0/2"]
    head = f"Recompiling function scaled in {__file__}:{first}\n    triggered by the following guard failure(s):\n    - "
    assert all(text.startswith(head) for text in texts(records))
    place = rf" +# return x.sin\(\) \+ k  # {re.escape(__file__)}:{first + 1} in scaled"
    assert re.search(rf"- 0/0: .*\bk\b.*{place}", texts(records)[0])
    assert re.search(rf"- 0/1: tensor 'x' size mismatch at index 0. expected 3, actual 4{place}\n    - 0/0: ", texts(records)[1])


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.table = {"a": [1, 2]}

    def forward(self, x):
        return self.linear(x) * self.table["a"][1]


def test_guards_log_is_a_tree():
    with logged("guards") as records:
        cdynamo.compile(Layer(), backend="eager")(x)
    assert texts(records)[0] == "GUARDS:"
    lines = texts(records)[1].split("\n")
    assert lines[1:4] == ["TREE_GUARD_MANAGER:", "+- RootGuardManager", "| +- GLOBAL_STATE: ___check_global_state()"]
    assert any(
        re.match(r"\| \+- GuardManager: source=L\['x'\], accessed_by=FrameLocalsGuardAccessor\(key='x', framelocals_idx=1\)", line) for line in lines
    )
    leaf = next(line for line in lines if "TENSOR_MATCH: check_tensor(L['x']" in line)
    assert leaf.startswith("| | +- ") and re.search(r"  # .*  # .*:\d+ in forward$", leaf)
    depth = [len(re.match(r"(\| )*", line).group()) // 2 for line in lines[2:] if line]
    assert all(below <= above + 1 for above, below in itertools.pairwise(depth))
    assert any("DictGetItemGuardAccessor('a')" in line for line in lines)


def test_graph_logs():
    for name in ("graph_code", "graph", "graph_sizes"):
        cdynamo.reset()
        with logged(name) as records:
            cdynamo.compile(scaled, backend="eager")(x, 2)
        (text,) = texts(records)
        head = "TRACED GRAPH\n ===== __compiled_fn_0_0 =====\n"
        wanted = {
            "graph_code": [head, 'L_x_: "f32[3][1]cpu"', f"# File: {__file__}:", "in scaled, code: return x.sin() + k"],
            "graph": [head, "call_method", "placeholder", "output"],
            "graph_sizes": ["TRACED GRAPH TENSOR SIZES\n===== __compiled_fn_0_0 =====\n", "l_x_: (3,)\n", "sin: (3,)\n"],
        }
        assert all(part in text for part in wanted[name]), text


def pair(x):
    return [x + 1, x]


def test_bytecode_log():
    with logged("bytecode") as records:
        cdynamo.compile(pair, backend="eager")(x)
    original, modified = texts(records)
    where = f"pair {__file__} line {pair.__code__.co_firstlineno} \n"
    assert original.startswith(f"ORIGINAL BYTECODE {where}") and "BINARY_OP" in original
    assert modified.startswith(f"MODIFIED BYTECODE {where}") and "BUILD_LIST" in modified and "BINARY_OP" not in modified


def test_steps_of_dynamo_log():
    with logged("dynamo", logging.INFO) as records:
        cdynamo.compile(scaled, backend=lambda gm, inputs: gm.forward)(x, 2)
    steps = [text for text in texts(records) if text.startswith("Step")]
    line = scaled.__code__.co_firstlineno
    assert steps[0] == f"Step 1: torchdynamo start tracing scaled {__file__}:{line}"
    assert [text.split(" ")[:3] for text in steps[1:]] == [["Step", "2:", "calling"], ["Step", "2:", "done"], ["Step", "1:", "torchdynamo"]]


def test_skip_is_said():
    with logged("dynamo", logging.DEBUG) as records:
        cdynamo.compile(user_skip, backend="eager")(x)
    assert f"skipping: user_skip (reason: Call to `torch._dynamo.skip_frame()`, file: {__file__})" in texts(records)


def test_logs_from_the_environment():
    script = "import torch, cdynamo\nf = cdynamo.compile(lambda x, k: x + k, backend='eager')\nfor k in (True, 'a' and 2.5): f(torch.ones(3), k)\n"
    for variable in ("TORCH_LOGS", "CDYNAMO_LOGS"):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env={**_environment(), variable: "recompiles,guards"})
        assert "[0/1] [__recompiles] Recompiling function" in done.stderr or "[0/1] [recompiles] Recompiling function" in done.stderr, done.stderr
        assert "TREE_GUARD_MANAGER" in done.stderr
    quiet = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=_environment())
    assert quiet.stderr == ""


def _environment():
    import os

    return {name: value for name, value in os.environ.items() if not name.endswith("_LOGS")}


def test_torchs_own_logging_tests_see_the_records():
    pytest.importorskip("expecttest", reason="torch.testing needs it")
    script = """
        import unittest
        import torch
        from torch.testing._internal.logging_utils import LoggingTestCase, make_logging_test
        import cdynamo

        def scaled(x, k):
            return x.sin() + k

        class Probe(LoggingTestCase):
            @make_logging_test(recompiles=True, graph_code=True)
            def test_records(self, records):
                compiled = torch.compile(scaled, backend="eager", dynamic=False)
                compiled(torch.ones(3), 1)
                compiled(torch.ones(4), 1)
                record = self.getRecord(records, "Recompiling function scaled")
                self.assertEqual(record.name, "torch._dynamo.guards.__recompiles")
                self.assertEqual(sum("TRACED GRAPH" in record.getMessage() for record in records), 2)

        cdynamo.install()
        result = unittest.TestResult()
        unittest.TestSuite([Probe("test_records")]).run(result)
        for _, text in result.errors + result.failures:
            print(text)
        print("fine" if result.wasSuccessful() and result.testsRun == 1 else "failed")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env=_environment())
    assert done.stdout.endswith("fine\n"), done.stdout + done.stderr


# ---- counters ----------------------------------------------------------------------------------------------------------


def test_counters(capsys):
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.utils import counters as theirs

    theirs.clear()
    cdynamo.compile(scaled, backend="eager")(x, 2)
    for counters in (cdynamo.counters, theirs):
        assert counters["stats"] == {"calls_captured": 2, "unique_graphs": 1} and counters["frames"] == {"total": 1, "ok": 1}
    cdynamo.compile(prints, backend="eager")(x)
    for counters in (cdynamo.counters, theirs):
        ((text, times),) = counters["graph_break"].items()
        assert text.startswith("Failed to trace builtin operator\n  Explanation: ") and times == 1 and not counters["unimplemented"]
        counters["graph_break"].clear()
    with pytest.raises(Unsupported):
        cdynamo.compile(prints, backend="eager", fullgraph=True)(x)
    for counters in (cdynamo.counters, theirs):
        assert not counters["graph_break"] and list(counters["unimplemented"].values()) == [1]


# ---- explain -----------------------------------------------------------------------------------------------------------


def inlined(x):
    y = x.cos()
    return y


def story(x):
    y = inlined(x) + 1
    n = len("abc")
    return y * n


def test_explain_line_by_line():
    found = cdynamo.explain(story)(x)
    line = story.__code__.co_firstlineno
    inner = inlined.__code__.co_firstlineno
    lines = found.lines()
    assert lines[__file__, line + 1].state == "captured" and dict(lines[__file__, line + 1].ops) == {0: ["cos", "add"]}
    assert lines[__file__, inner + 1].ops[0] == ["cos"] and (__file__, line + 2) not in lines
    text = str(found)
    assert re.search(rf"^ *{line + 1} \| graph 0  \|     y = inlined\(x\) \+ 1 +# cos add$", text, re.M), text
    assert re.search(rf"^ *{line + 2} \|          \|     n = len\(\"abc\"\)$", text, re.M), text
    assert re.search(rf"^inlined from {re.escape(__file__)}\n *{inner + 1} \| graph 0  \|     y = x.cos\(\)", text, re.M), text


def test_explain_a_break(capsys):
    found = cdynamo.explain(outer)(x)
    line = prints.__code__.co_firstlineno + 1
    (reason,) = found.break_reasons
    assert reason.reason.startswith("Failed to trace builtin operator") and reason.id == "CD0023" and reason.graph_break
    assert [frame.name for frame in reason.user_stack] == ["outer", "prints"]
    assert found.lines()[__file__, line].state == "broken"
    outside = outer.__code__.co_firstlineno + 1
    assert found.lines()[__file__, outside].state == "broken" and not found.lines()[__file__, outside].broken
    assert re.search(rf"^ *{outside} \| break    \|     return prints\(x\) \+ 1 +# .*CD0023 in prints$", str(found), re.M), str(found)
    assert re.search(rf'^ *{line} \| break    \|     print\("seen"\) +# CD0023 Failed to trace builtin operator$', str(found), re.M), str(found)


def parts(x):
    y = x + 1
    print("between")
    z = y.sum() * 2
    if z > 0:
        z = z + 1
    return z


def test_explain_parts(capsys):
    found = cdynamo.explain(parts)(x)
    line = parts.__code__.co_firstlineno
    assert (found.graph_count, found.graph_break_count, len(found.skips)) == (3, 2, 0)
    assert [[getattr(op, "__name__", op) for op in ops] for ops in found.ops_per_graph] == [["add"], ["sum", "mul", "gt"], ["add"]]
    states = {at - line: story.state for (_, at), story in found.lines().items()}
    assert states == {1: "captured", 2: "broken", 3: "captured", 4: "broken", 5: "captured"}
    text = str(found)
    assert text.startswith("3 graphs, 5 ops, ") and "2 breaks, 0 skipped frames" in text.split("\n")[0]
    assert re.search(rf"^ *{line + 4} \| break    \|     if z > 0: +# gt; CD0010 Data-dependent branching$", text, re.M), text
    assert re.search(rf"^ *{line + 5} \| graph 2  \|         z = z \+ 1", text, re.M), text
    assert f"graph 1 of parts ({__file__}:{line}), from line {line + 2} on: 1 input, 3 ops: sum mul gt" in text


def test_parts_have_ids_and_counters(capsys):
    from torch._dynamo.utils import counters as theirs

    theirs.clear()
    compiled = cdynamo.compile(parts, backend="eager", dynamic=False)
    with logged("graph_breaks") as breaks:
        compiled(x)
    assert [record.compile_id for record in breaks] == ["0/0", "1/0"]
    line = parts.__code__.co_firstlineno
    for counters in (cdynamo.counters, theirs):
        assert counters["frames"] == {"total": 3, "ok": 3} and counters["stats"] == {"calls_captured": 5, "unique_graphs": 3}
        assert sum(counters["graph_break"].values()) == 2 and len(counters["resumes"]) == 2
        assert f"torch_dynamo_resume_in_parts_at_{line + 2}" in counters["resumes"]
    with logged("recompiles") as records:
        compiled(torch.ones(4))
    assert [record.compile_id for record in records] == ["0/1", "1/1"]
    assert "- 1/0: tensor 'y' size mismatch at index 0. expected 3, actual 4" in texts(records)[1]
    assert all(f"Recompiling function parts in {__file__}:{line}\n" in text for text in texts(records))


def test_explain_has_torchs_fields():
    from torch._dynamo.backends.debugging import ExplainOutput

    cdynamo.install()
    try:
        found = torch._dynamo.explain(story)(x)
    finally:
        cdynamo.uninstall()
    for name in ExplainOutput.__dataclass_fields__:
        assert hasattr(found, name), name
    assert (found.graph_count, found.graph_break_count, found.op_count) == (1, 0, 3)
    assert [len(ops) for ops in found.ops_per_graph] == [3] and isinstance(found.graphs[0], torch.fx.GraphModule)
    assert found.out_guards and found.compile_times.startswith("Function, Runtimes (s)\ncapture, 0.")


# ---- limits and errors -------------------------------------------------------------------------------------------------


def test_recompile_limit_warning():
    compiled = cdynamo.compile(scaled, backend="eager", dynamic=False)
    with logged("recompiles") as records, cdynamo.config.patch(recompile_limit=2):
        for n in range(1, 6):
            compiled(torch.ones(n), 1)
    (warning,) = (record for record in records if record.levelno == logging.WARNING)
    text = warning.getMessage()
    assert warning.name == "torch._dynamo.convert_frame" and warning.compile_id == "0/2"
    where = f"'scaled' ({__file__}:{scaled.__code__.co_firstlineno})"
    head = f"torch._dynamo hit config.recompile_limit (2)\n   function: {where}\n   last reason: 0/1: tensor 'x' size mismatch"
    assert text.startswith(head)
    assert 'To log all recompilation reasons, use TORCH_LOGS="recompiles".\nTo diagnose recompilation issues, see https://' in text


def test_recompile_limit_can_fail():
    from torch._dynamo.exc import FailOnRecompileLimitHit

    for fullgraph, setting, words in ((True, False, "Hard failure due to fullgraph=True"), (False, True, "fail_on_recompile_limit_hit is set")):
        compiled = cdynamo.compile(scaled, backend="eager", dynamic=False, fullgraph=fullgraph)
        with cdynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=setting):
            compiled(x, 1)
            for _ in range(2):
                with pytest.raises(FailOnRecompileLimitHit, match=words):
                    compiled(torch.ones(4), 1)
            assert torch.equal(compiled(x, 1), scaled(x, 1))


def test_error_on_recompile():
    import torch._dynamo.config
    from torch._dynamo.exc import RecompileError

    compiled = cdynamo.compile(scaled, backend="eager", dynamic=False)
    compiled(x, 1)
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(RecompileError, match="Recompiling function scaled in"):
        compiled(torch.ones(4), 1)
    assert compiled(torch.ones(4), 1).shape == (4,)


def test_suppress_errors(caplog):
    def broken(gm, inputs):
        raise ValueError("no luck")

    with cdynamo.config.patch(suppress_errors=True):
        assert torch.equal(cdynamo.compile(scaled, backend=broken)(x, 2), scaled(x, 2))
    assert "no luck" in caplog.text and "suppress_errors" in caplog.text


def test_compile_ids_of_frames():
    seen = []
    with cdynamo._events.listening(lambda kind, payload: seen.append(str(cdynamo._compile_ids.latest())) if kind == "start" else None):
        compiled = cdynamo.compile(scaled, backend="eager", dynamic=False)
        compiled(x, 1)
        cdynamo.compile(pair, backend="eager")(x)
        compiled(torch.ones(4), 1)
    assert seen == ["0/0", "1/0", "0/1"]
