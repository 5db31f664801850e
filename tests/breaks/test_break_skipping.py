"""Sections 1-7 of the catalogue of skipped functions: what the reference drops goes on here, or is dropped with break_in_blocks = "skip"."""

import contextlib
import dataclasses
import warnings
from typing import Any

import pytest
import torch
from harness import CountingBackend, ext, t

import cdynamo
from cdynamo._events import listening

graph_break = torch._dynamo.graph_break
skip_frame = torch._dynamo.skip_frame


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


@dataclasses.dataclass
class Ran:
    graphs: list[list[str]]
    breaks: list[dict[str, Any]]
    skips: list[dict[str, Any]]
    captures: list[int]  # by call

    @property
    def ops(self):
        return [len(g) for g in self.graphs]


def block_rule(rule):
    if rule == "continue":
        return contextlib.nullcontext()
    if not hasattr(cdynamo.config, "break_in_blocks"):
        pytest.xfail("config.break_in_blocks is not there yet")
    return cdynamo.config.patch(break_in_blocks=rule)


def run(fn, *args, calls=3, rule="continue", **options):
    """Runs it compiled `calls` times against eager."""
    ran = Ran([], [], [], [])

    def listen(kind, payload):
        if kind == "break":
            ran.breaks.append(payload)
        elif kind == "skip":
            ran.skips.append(payload)
        elif kind == "capture":
            ran.captures[-1] += 1

    backend = CountingBackend()
    with block_rule(rule), listening(listen):
        call = cdynamo.compile(fn, backend=backend, **options)
        for _ in range(calls):
            ran.captures.append(0)
            expected = fn(*args)
            actual = call(*args)
            torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    ran.graphs = backend.graphs
    return ran


def in_for(x):
    y = x + 1
    for i in range(3):
        y = y * 2
        if i == 1:
            graph_break()
    return y - 3


def in_while(x):
    y = x + 1
    n = 0
    while n < 3:
        y = y * 2
        if n == 1:
            graph_break()
        n += 1
    return y - 3


class Manager:
    events: list[str] = []

    def __enter__(self):
        Manager.events.append("in")

    def __exit__(self, *exc):
        Manager.events.append("out")


@contextlib.contextmanager
def generated():
    yield


def in_with(x):
    y = x + 1
    with Manager():
        y = y * 2
        graph_break()
    return y - 3


def in_generated(x):
    y = x + 1
    with generated():
        y = y * 2
        graph_break()
    return y - 3


def in_try(x):
    y = x + 1
    try:
        y = y * 2
        graph_break()
    except ValueError:
        y = y * 100
    return y - 3


def in_handler(x):
    y = x + 1
    try:
        raise ValueError
    except ValueError:
        y = y * 2
        graph_break()
    return y - 3


def in_finally(x):
    y = x + 1
    try:
        y = y * 2
    finally:
        y = y * 5
        graph_break()
    return y - 3


BLOCKS = [in_for, in_while, in_with, in_generated, in_try, in_handler]


# ---- 1: what a skip is ----


@pytest.mark.parametrize("fn", BLOCKS)
def test_skipped_like_the_reference(fn):
    """1.1, 2.2, 2.6, 2.8: nothing of the frame is compiled, and it says why."""
    ran = run(fn, t(3), rule="skip")
    assert ran.graphs == []
    assert ran.breaks or ran.skips


@pytest.mark.parametrize("fn", [*BLOCKS, in_finally])
def test_goes_on_here(fn):
    """The same without the setting: two graphs; what follows a `for` that goes on has its own."""
    ran = run(fn, t(3))
    assert len(ran.graphs) == 2 or (fn is in_for and len(ran.graphs) == 3)
    assert ran.captures[1:] == [0, 0]


def test_finally_suite_resumes_in_both():
    """2.8: a `finally` suite without an exception resumes in the reference too."""
    assert len(run(in_finally, t(3), rule="skip").graphs) == 2


def scaled(v):
    return v * 2 + 1


def test_callees_of_a_skipped_frame_are_captured():
    """1.2: a skip covers one frame; what it calls is captured."""

    def fn(x):
        skip_frame()
        return scaled(x) + scaled(x + 1)

    ran = run(fn, t(3))
    assert ran.graphs and all(g == ["mul", "add"] for g in ran.graphs)


def test_no_effect_leaks():
    """1.3, 1.4: what was traced before the skip leaves nothing."""
    seen = []

    def fn(x):
        seen.append("a")
        y = x + 1
        for _ in range(2):
            seen.append("b")
            graph_break()
        return y

    run(fn, t(3), calls=1, rule="skip")
    assert seen == ["a", "b", "b"] * 2  # eager and compiled
    seen.clear()
    run(fn, t(3), calls=1)
    assert seen == ["a", "b", "b"] * 2


def test_decision_is_kept():
    """1.5: later calls, other shapes too, are not traced again."""
    backend = CountingBackend()
    breaks = []
    with block_rule("skip"), listening(lambda kind, payload: breaks.append(kind)):
        call = cdynamo.compile(in_for, backend=backend)
        call(t(3))
        first = len(breaks)
        assert first
        call(t(3))
        call(t(5))
        assert len(breaks) == first


def test_no_warning_at_default_level(capfd):
    """1.6."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(in_for, t(3), rule="skip")
        run(in_for, t(3))
    assert not caught
    assert capfd.readouterr().err == ""


def test_without_the_cause_no_skip():
    """1.7."""

    def harmless(x):
        y = x + 1
        for _ in range(3):
            y = y * 2
        return y - 3

    assert run(harmless, t(3), rule="skip").ops == [5]


@pytest.mark.parametrize("fn", [*BLOCKS, in_finally])
@pytest.mark.parametrize("rule", ["skip", "continue"])
def test_fullgraph_raises(fn, rule):
    """1.8."""
    with pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break"):
        run(fn, t(3), fullgraph=True, rule=rule)


# ---- 2: reasons ----


def test_skip_frame_is_no_op_in_eager():
    """2.1."""
    assert skip_frame() is None

    def fn(x):
        y = x + 1
        skip_frame("message")
        return y * 2

    ran = run(fn, t(3))
    assert ran.graphs == []


def callee(y):
    y = y * 2
    graph_break()
    return y + 1


def caller_with_loop(x):
    for _ in range(2):
        x = callee(x)
    return x


def test_loop_in_the_caller():
    """2.3: the loop is in the caller, the break in a callee: caller skipped, callee has head and rest."""
    ran = run(caller_with_loop, t(3), rule="skip")
    assert len(ran.graphs) == 2


def test_loop_in_the_caller_goes_on():
    ran = run(caller_with_loop, t(3))
    assert 2 <= len(ran.graphs) <= 4
    assert ran.captures[2] == 0


def test_break_not_reached():
    """2.4."""

    def fn(x, flag):
        for _ in range(3):
            x = x + 1
            if flag:
                graph_break()
        return x

    assert run(fn, t(3), False, rule="skip").ops == [3]


def test_break_between_loops():
    """2.5."""

    def fn(x):
        for _ in range(2):
            x = x + 1
        graph_break()
        for _ in range(3):
            x = x * 2
        return x

    assert run(fn, t(3), rule="skip").ops == [2, 3]


def test_manager_entered_once_per_call():
    """2.7."""
    for rule in ("skip", "continue"):
        Manager.events.clear()
        run(in_with, t(3), calls=2, rule=rule)
        assert Manager.events == ["in", "out"] * 4


def test_frame_without_content():
    """2.9, 2.10: no operation, no graph."""

    def fn(a, b):
        graph_break()
        return a + b

    backend = CountingBackend()
    assert cdynamo.compile(fn, backend=backend)(1, 2) == 3
    assert backend.graphs == []


def test_recompile_limit():
    """2.12."""
    backend = CountingBackend()
    with cdynamo.config.patch(recompile_limit=2):
        call = cdynamo.compile(lambda x, n: x * n, backend=backend)
        for n in range(5):
            assert torch.equal(call(t(3), n), t(3) * n)
        assert len(backend.graphs) <= 2
        assert torch.equal(call(t(3), 0), t(3) * 0)  # what was compiled is still used


def test_recompile_limit_fullgraph():
    """2.14."""
    with cdynamo.config.patch(recompile_limit=1), pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        call = cdynamo.compile(lambda x, n: x * n if n % 2 else x + str(n).count("0"), backend="eager", fullgraph=True)
        for n in range(5):
            call(t(3), n)


def test_backend_error():
    """2.13."""

    def bad(gm, inputs):
        raise RuntimeError("bad backend")

    def fn(x):
        y = x + 1
        graph_break()
        return y * 2

    with pytest.raises(Exception, match="bad backend"):
        cdynamo.compile(fn, backend=bad)(t(3))
    with cdynamo.config.patch(suppress_errors=True, strict=False):
        cdynamo.reset()
        assert torch.equal(cdynamo.compile(fn, backend=bad)(t(3)), (t(3) + 1) * 2)


class Base:
    def scaled(self, x):
        return x * 2


class Derived(Base):
    def scaled(self, x):
        inner = lambda: self  # noqa: E731
        y = super().scaled(x)
        graph_break()
        return y + (inner() is self)


@pytest.mark.parametrize("rule", ["skip", "continue"])
def test_frame_that_cannot_be_resumed(rule):
    """super() reads self where CPython put it, and that is a cell: the frame runs eagerly, its callee is captured."""
    ran = run(Derived().scaled, t(3), rule=rule)
    assert ran.graphs == [["mul"]]
    assert len(ran.skips) == 1


# ---- 3: ways out ----


def test_loop_unrolled_through_a_closure():
    """3.1, 3.2."""

    def fn(x):
        def step(k):
            nonlocal x
            x = x + 1
            if k == 2:
                graph_break()

        step(0)
        step(1)
        step(2)
        step(3)
        return x * 2

    ran = run(fn, t(3))
    assert sum(ran.ops) == 5 and len(ran.graphs) == 2


def test_break_between_managers():
    """3.3."""

    def fn(x):
        with Manager():
            x = x + 1
        graph_break()
        with Manager():
            x = x * 2
        return x

    assert run(fn, t(3), rule="skip").ops == [1, 1]


@pytest.mark.parametrize(
    "context",
    [
        contextlib.nullcontext, torch.no_grad, torch.enable_grad, lambda: torch.set_grad_enabled(False), torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
    ids=["nullcontext", "no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "autocast"],
)  # fmt: skip
@pytest.mark.parametrize("rule", ["skip", "continue"])
def test_known_contexts_go_on(context, rule):
    """3.4, 3.5: contexts that the compiler knows do not skip; the observer sees them, and they are left after."""
    seen = []

    @torch.compiler.disable
    def observer():
        seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled()))

    def fn(x):
        with contextlib.nullcontext(), context():
            y = x * 2
            observer()
            y = y * 3
        return y

    ran = run(fn, t(3), rule=rule)
    assert len(ran.graphs) == 2
    assert len(set(seen)) == 1
    assert torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")


def test_break_between_tries():
    """3.7."""

    def fn(x):
        try:
            x = x + 1
        except ValueError:
            pass
        graph_break()
        try:
            x = x * 2
        finally:
            x = x - 1
        return x

    assert run(fn, t(3), rule="skip").ops == [1, 2]


def test_skip_in_a_callee_is_a_break_in_the_caller():
    """3.8, 3.9."""

    def offending(v):
        skip_frame()
        return v

    def fn(x):
        y = x + 1
        y = offending(y)
        return y * 2

    ran = run(fn, t(3))
    assert ran.ops == [1, 1]


def test_unused_result_of_the_rest():
    """3.10: operations whose results nobody sees need not run, but the break does."""

    def fn(x):
        y = x + 1
        graph_break()
        y * 2
        return y

    ran = run(fn, t(3))
    assert len(ran.graphs) in (1, 2)


# ---- 6: the message ----


def test_message_of_a_break():
    """6.1-6.3: reason, explanation, hint, where."""
    ran = run(callee, t(3), calls=1)
    (payload,) = ran.breaks
    assert payload["reason"] == "UserBreak"
    assert payload["explanation"]
    assert payload["stack"][-1][2] == "callee" and payload["stack"][-1][0] == __file__


def test_stack_of_a_break_in_a_callee():
    """6.6: frames outermost first, the last is the line of the break."""

    def fn(x):
        return callee(x + 1) * 2

    ran = run(fn, t(3), calls=1)
    names = [frame[2] for frame in ran.breaks[0]["stack"]]
    assert names[-2:] == ["fn", "callee"]


def test_counted_once_per_break():
    """6.7: the same break met again in later calls is not told again."""
    ran = run(in_for, t(3), calls=3)
    assert sum(payload["reason"] == "UserBreak" for payload in ran.breaks) == 1


# ---- 7: the rest of a frame ----


def failing_rest(x):
    y = x + 1
    graph_break()
    y = y.reshape(2, 2)
    return y


def test_traceback_names_the_user():
    """7.1: what is raised in the rest shows the user's file, function and line."""
    import traceback

    call = cdynamo.compile(failing_rest, backend="eager")
    for _ in range(3):
        with pytest.raises(RuntimeError) as info:
            call(t(3))
        mine = [f for f in traceback.extract_tb(info.value.__traceback__) if f.filename == __file__ and f.name == "failing_rest"]
        assert mine and mine[-1].line == "y = y.reshape(2, 2)"


def test_broken_call_in_callee_runs_once():
    """7.5: the callee is not started again for the break."""
    seen = []

    def inner(v):
        seen.append("start")
        v = v * 2
        ext(v)
        seen.append("end")
        return v + 1

    def fn(x):
        return inner(x + 1) * 3

    ran = run(fn, t(3), calls=1)
    assert seen == ["start", "end"] * 2
    assert ran.ops == [2, 2]
