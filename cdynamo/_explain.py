"""cdynamo.explain: what a call was captured as."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

from ._backends import Backend, CompileOptions
from ._events import guard_texts, listening
from ._fx import LazyGraphModule, to_graph_module
from ._text import describe_break, describe_code, stack_summary, user_stack_text


@dataclasses.dataclass
class BreakReason:
    """Why a capture ended before its function did, and where in the user's code."""

    reason: str
    stack: list[tuple[str, int, str]]
    graph_break: bool = True

    @property
    def user_stack(self) -> Any:
        return stack_summary(self.stack)

    def __str__(self) -> str:
        where = user_stack_text(self.stack)
        return f"{self.reason}\n{where}" if where else self.reason


@dataclasses.dataclass
class Explanation:
    """All that happened in one call."""

    programs: list[Any] = dataclasses.field(default_factory=list)
    captured: list[str] = dataclasses.field(default_factory=list)  # by graph: the function it is of
    out_guards: list[str] = dataclasses.field(default_factory=list)
    break_reasons: list[BreakReason] = dataclasses.field(default_factory=list)
    skips: list[BreakReason] = dataclasses.field(default_factory=list)
    recompiles: list[str] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)
    seconds: float = 0.0

    @functools.cached_property
    def graphs(self) -> list[LazyGraphModule]:
        return [to_graph_module(program) for program in self.programs]

    @property
    def graph_count(self) -> int:
        return len(self.programs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(program.calls for program in self.programs)

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        return [[node[1] for node in program.describe(False) if node[0].startswith("call")] for program in self.programs]

    def __str__(self) -> str:
        def times(n: int, what: str) -> str:
            return f"{n} {what}{'' if n == 1 else 's'}"

        head = [times(self.graph_count, "graph"), times(self.op_count, "op"), times(len(self.out_guards), "guard")]
        head += [times(self.graph_break_count, "break"), times(len(self.skips), "skipped frame")]
        lines = [", ".join(head) + f"; {self.seconds * 1e3:.1f} ms"]
        for i, (program, where) in enumerate(zip(self.programs, self.captured)):
            names = [getattr(target, "__name__", str(target)) for target in self.ops_per_graph[i]]
            shown = " ".join(names[:12]) + (f" ... ({len(names)} in all)" if len(names) > 12 else "")
            lines.append(f"graph {i} of {where}: {times(len(program.inputs), 'input')}, {times(program.calls, 'op')}: {shown}")
        for title, entries in (("break", self.break_reasons), ("skip", self.skips)):
            for i, entry in enumerate(entries):
                lines.append(f"{title} {i}: " + str(entry).replace("\n", "\n    "))
        lines += [f"recompile: {text}" for text in self.recompiles]
        lines += [f"engine failure: {text}" for text in self.failures]
        if self.out_guards:
            lines.append("guards:")
            lines += [f"  {text}" for text in self.out_guards]
        return "\n".join(lines)

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        """A listener for events."""
        stack = list(payload.get("stack") or ())
        if kind == "capture":
            if payload.get("graph") is not None:
                self.programs.append(payload["graph"])
                self.captured.append(describe_code(payload.get("code")))
            self.out_guards += guard_texts(payload)
        elif kind == "break":
            self.break_reasons.append(BreakReason(describe_break(payload), stack))
        elif kind == "skip":
            self.skips.append(BreakReason(describe_break(payload), stack, graph_break=False))
        elif kind == "recompile":
            self.recompiles += [str(text) for text in payload.get("failed") or ()]
        elif kind == "failure":
            self.failures.append(f"{describe_code(payload.get('code'))}: {payload.get('error')!r}")


def explain(fn: Any, *extra_args: Any, **extra_kwargs: Any) -> Any:
    """explain(fn)(*args): runs fn once through a fresh capture and says what came of it."""
    from ._compile import apply

    def run(*args: Any, **kwargs: Any) -> Explanation:
        found = Explanation()
        compiled: Callable[..., Any] = apply(fn, CompileOptions(_run_as_captured()))
        started = time.perf_counter()
        with listening(found.record):
            compiled(*args, **kwargs)
        found.seconds = time.perf_counter() - started
        return found

    return run(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else run


def _run_as_captured() -> Backend:
    from ._backends import resolve

    return resolve("eager")
