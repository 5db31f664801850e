"""Break cases: run eagerly and compiled three times each, compared in all that a user can see, with the number of graphs, the
share of tensor operations that ran inside graphs, and how long captures go on.

    @case(lambda: (t(3),))
    def in_the_middle(x):
        return ext(x + 1) * 2

says: two graphs in the first call, every tensor operation inside a graph, at least one break, no capture after the first call.

How a case breaks: ext(v) is opaque Python that gives v back, boom(...) raises, opaque C functions are time.sleep and the like. All that
ext and boom were given is in LOG, which is compared too.
"""

from __future__ import annotations

import ast
import dataclasses
import linecache
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from differ import Comparison, Seen, Setup, observe, t
from torch.utils._python_dispatch import TorchDispatchMode

import cdynamo

__all__ = ["LOG", "Breaks", "Setup", "boom", "ext", "ext2", "note", "t"]

HERE = str(Path(__file__).parent)
THIS = __file__

# ---- opaque things -----------------------------------------------------------------------------------------------------

LOG: list[Any] = []


def snapshot(value: Any) -> Any:
    """What the value is now."""
    if isinstance(value, torch.Tensor):
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, value.tolist())
    if type(value) in (list, tuple):
        return [snapshot(v) for v in value]
    if type(value) is dict:
        return [(repr(k), snapshot(v)) for k, v in value.items()]
    if type(value) in (int, float, bool, str, bytes, type(None)):
        return repr(value)
    return type(value).__name__


def note(*values: Any) -> None:
    """Remembers the values as they are now."""
    LOG.append((snapshot(values), torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))


@torch.compiler.disable
def ext(value: Any = None, *rest: Any, **named: Any) -> Any:
    """Opaque: gives its first argument back."""
    note(value, *rest, named)
    return value


@torch.compiler.disable
def ext2(value: Any) -> Any:
    """Opaque: twice the argument (one tensor operation outside of any graph)."""
    note(value)
    return value * 2


@torch.compiler.disable
def boom(error: Any = ValueError, *args: Any) -> Any:
    """Opaque: raises."""
    note("boom", *args)
    raise error(*args) if isinstance(error, type) else error


# ---- cases -------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Case:
    name: str
    build: Callable[[], Setup]
    graphs: int | tuple[int, int] | None = 2  # graphs with operations compiled by the first call; (least, most); None: any
    share: float = 1.0  # at least this part of the tensor operations of each call runs inside graphs
    breaks: int | tuple[int, int] | None = None  # breaks told in the first call; (least, most); None: at least one
    reason: str | None = None  # of the first break
    settled: int = 1  # the call from which on nothing is compiled any more (the first is 0)
    after_change: tuple[int | None, ...] = ()  # graphs compiled by the call after each change; None: any number
    captures: int | None = None  # most captures of the first call, graphs or not
    traceback: bool = True  # an exception's traceback names the same lines of the case
    config: dict[str, Any] = dataclasses.field(default_factory=dict)


class Breaks:
    def __init__(self, **common: Any) -> None:
        self.cases: list[Case] = []
        self.common = common

    def add(self, name: str, build: Callable[[], Setup], **expect: Any) -> None:
        self.cases.append(Case(name, build, **{**self.common, **expect}))

    def case(self, args: Callable[[], Any] = lambda: (t(3),), **expect: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        changes = expect.pop("then", ())  # arguments of further calls

        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            def build() -> Setup:
                current = [args]
                return Setup(fn, lambda: current[0](), changes=[lambda new=new: current.__setitem__(0, new) for new in changes])

            self.add(fn.__name__, build, **expect)
            return fn

        return add

    def scenario(self, **expect: Any) -> Callable[[Callable[[], Setup]], Callable[[], Setup]]:
        def add(build: Callable[[], Setup]) -> Callable[[], Setup]:
            self.add(build.__name__, build, **expect)
            return build

        return add

    def table(
        self, rows: dict[str, Any], namespace: dict[str, Any], args: Callable[[], Any] = lambda: (t(3),), parameters: str = "x", **expect: Any
    ) -> None:
        """One case per row, `name: body` or `name: (body, expectations)`: the body of `def name(parameters)`; an expression is returned."""
        for name, row in rows.items():
            body, own = row if isinstance(row, tuple) else (row, {})
            own = dict(own)
            own_args = own.pop("args", args)
            source = f"def {name}({own.pop('parameters', parameters)}):\n" + textwrap.indent(as_statements(body), "    ") + "\n"
            self.case(own_args, **{**expect, **own})(defined(name, source, namespace))

    def as_test(self) -> Callable[..., None]:
        names = [c.name for c in self.cases]
        assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]

        @pytest.mark.parametrize("c", [pytest.param(c, id=c.name) for c in self.cases])
        def test(c: Case) -> None:
            check(c)

        return test


def as_statements(body: str) -> str:
    body = textwrap.dedent(body).strip()
    try:
        ast.parse(body, mode="eval")
    except SyntaxError:
        return body
    return f"return {body}"


def defined(name: str, source: str, namespace: dict[str, Any]) -> Any:
    """What the source text defines under that name, with lines that tracebacks can show."""
    file = f"{HERE}/<{namespace['__name__']}.{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), namespace)
    return namespace[name]


# ---- counting ----------------------------------------------------------------------------------------------------------


class Operations(TorchDispatchMode):
    """Counts the operations that reach ATen's kernels. Reading a scalar is no tensor operation."""

    not_counted = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.lift_fresh.default)

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in self.not_counted:
            self.count += 1
        return func(*args, **(kwargs or {}))


class CountingBackend:
    """Counts graphs, and the operations that ran inside them."""

    __name__ = "counting"

    def __init__(self) -> None:
        self.graphs: list[list[str]] = []
        self.operations = 0

    def __call__(self, gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        ops = [getattr(n.target, "__name__", str(n.target)) for n in gm.graph.nodes if n.op.startswith("call")]
        if ops:
            self.graphs.append(ops)

        def run(*args: Any) -> Any:
            with Operations() as inside:
                result = gm.forward(*args)
            self.operations += inside.count
            return result

        return run


@dataclasses.dataclass
class Call:
    """One call of one world."""

    seen: Seen
    graphs: list[list[str]]
    operations: int  # of the world's count: all of them (eager), those inside graphs (counting backend)


# ---- running and comparing ---------------------------------------------------------------------------------------------


def run_world(case: Case, backend: Any, counted: bool = False) -> list[Call]:
    cdynamo.reset()
    setup = case.build()
    call = setup.fn if backend is None else cdynamo.compile(setup.fn, backend=backend)
    counting = isinstance(backend, CountingBackend)
    history: list[Call] = []

    def once() -> None:
        LOG.clear()
        before = (len(backend.graphs), backend.operations) if counting else (0, 0)
        total = 0
        if counted:

            def call_counted(*args: Any, **kwargs: Any) -> Any:
                nonlocal total
                operations = Operations()
                try:
                    with operations:
                        return setup.fn(*args, **kwargs)
                finally:
                    total = operations.count

            seen = observe(call_counted, setup)
        else:
            seen = observe(call, setup)
        seen.watched = (seen.watched, list(LOG))
        if counting:
            history.append(Call(seen, backend.graphs[before[0] :], backend.operations - before[1]))
        else:
            history.append(Call(seen, [], total))

    try:
        for _ in range(3):
            once()
        for change in setup.changes:
            change()
            once()
        return history
    finally:
        setup.cleanup()
        torch.set_grad_enabled(True)
        LOG.clear()
        cdynamo.reset()


def chain(error: BaseException | None, depth: int = 0) -> Any:
    """The exception with all that led to it."""
    if error is None or depth > 8:
        return None
    return (
        type(error).__qualname__,
        str(error),
        error.__suppress_context__,
        chain(error.__cause__, depth + 1),
        chain(error.__context__, depth + 1),
        list(getattr(error, "__notes__", ())),
    )


def user_lines(error: BaseException | None) -> list[tuple[str, int | None, str]]:
    """Where the exception passed, in the files of the cases."""
    if error is None:
        return []
    return [
        (Path(f.filename).name, f.lineno, f.name)
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename.startswith(HERE) and f.filename != THIS
    ]


def check(case: Case) -> None:
    with cdynamo.config.patch(strict=True, **case.config):
        totals = [call.operations for call in run_world(case, None, counted=True)]
        backend = CountingBackend()
        counted = run_world(case, backend)
        compare_worlds(case, run_world(case, None), counted, "counting backend")  # comparing uses up iterators: a fresh eager world each time
        check_counts(case, counted, totals)
        compare_worlds(case, run_world(case, None), run_world(case, "eager"), "eager backend")


def compare_worlds(case: Case, eager: list[Call], compiled: list[Call], world: str) -> None:
    for step, (expected, actual) in enumerate(zip(eager, compiled, strict=True)):
        a, b = expected.seen, actual.seen
        try:
            Comparison().compare(a, b, f"{world}, call {step}")
            assert chain(a.error) == chain(b.error), f"{world}, call {step}: chain of exceptions"
            if case.traceback:
                assert user_lines(a.error) == user_lines(b.error), f"{world}, call {step}: traceback"
        except AssertionError as problem:
            said = "; ".join(b.events.breaks) or "nothing"
            raise AssertionError(
                f"{problem}\nengine said: {said}; graphs: {actual.graphs}; eager error: {a.error!r}; compiled error: {b.error!r}"
            ) from b.error


def within(number: int, wanted: int | tuple[int, int]) -> bool:
    least, most = wanted if isinstance(wanted, tuple) else (wanted, wanted)
    return least <= number <= most


def check_counts(case: Case, calls: list[Call], totals: list[int]) -> None:
    first = calls[0]
    said = f"graphs: {first.graphs}, breaks: {first.seen.events.breaks}"
    assert within(len(first.seen.events.breaks), (1, 10**6) if case.breaks is None else case.breaks), (
        f"{len(first.seen.events.breaks)} breaks; {said}"
    )
    if case.reason is not None:
        assert first.seen.events.breaks[0].startswith(case.reason), said
    if case.graphs is not None:
        assert within(len(first.graphs), case.graphs), f"{len(first.graphs)} graphs; {said}"
    if case.captures is not None:
        assert first.seen.events.captures <= case.captures, f"{first.seen.events.captures} captures; {said}"
    for i, (call, total) in enumerate(zip(calls, totals, strict=True)):
        assert call.operations >= case.share * total, f"call {i}: {call.operations} of {total} operations inside graphs; {said}"
        assert call.operations <= total, f"call {i}: {call.operations} operations inside graphs, eager has {total}; {said}"
    for i, call in enumerate(calls[case.settled : 3], case.settled):
        events = call.seen.events
        assert not call.graphs and not events.captures, (
            f"call {i} compiles: {call.graphs}, {events.captures} captures; {events.recompiles} {events.breaks}"
        )
    for i, wanted in enumerate(case.after_change):
        if wanted is not None:
            now = calls[3 + i]
            assert len(now.graphs) == wanted, f"after change {i}: {now.graphs}, {now.seen.events.recompiles} {now.seen.events.breaks}"
