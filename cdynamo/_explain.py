"""cdynamo.explain: what a call was captured as, line by line."""

from __future__ import annotations

import collections
import dataclasses
import functools
import linecache
import time
from collections.abc import Callable
from types import CodeType
from typing import Any

from ._backends import Backend, CompileOptions
from ._events import listening
from ._fx import LazyGraphModule, to_graph_module
from ._logs import guard_texts
from ._text import break_title, describe_break, describe_code, stack_summary, user_stack_text

_GUARDS_SHOWN = 30


@dataclasses.dataclass
class BreakReason:
    """Why a capture ended before its function did, and where in the user's code."""

    reason: str
    stack: list[tuple[str, int, str]]
    graph_break: bool = True
    title: str = ""
    id: str = ""
    count: int = 1  # how often it happened at this place

    @property
    def user_stack(self) -> Any:
        return stack_summary(self.stack)

    def __str__(self) -> str:
        where = user_stack_text(self.stack)
        return f"{self.reason}\n{where}" if where else self.reason


@dataclasses.dataclass
class LineStory:
    """What became of one line of the user's program."""

    ops: dict[int, list[str]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))  # by graph
    broken: list[BreakReason] = dataclasses.field(default_factory=list)
    broken_inside: list[BreakReason] = dataclasses.field(default_factory=list)  # in what the line calls
    eager: bool = False

    @property
    def state(self) -> str:
        """ "captured", "broken", "eager", or "" where the line has no part in any graph."""
        if self.broken or self.broken_inside:
            return "broken"
        if self.eager:
            return "eager"
        return "captured" if self.ops else ""

    @property
    def mark(self) -> str:
        """The state in few letters, with the graphs."""
        if self.state == "captured":
            more = [f"+{len(self.ops) - 3}"] if len(self.ops) > 4 else []
            return "graph " + ",".join([*(str(i) for i in list(self.ops)[: 3 if more else 4]), *more])
        return "break" if self.state == "broken" else self.state


@dataclasses.dataclass
class Explanation:
    """All that happened in one call. Has the fields of torch's ExplainOutput."""

    programs: list[Any] = dataclasses.field(default_factory=list)
    captured: list[str] = dataclasses.field(default_factory=list)  # by graph: the function it is of
    out_guards: list[str] = dataclasses.field(default_factory=list)
    break_reasons: list[BreakReason] = dataclasses.field(default_factory=list)
    skips: list[BreakReason] = dataclasses.field(default_factory=list)
    recompiles: list[str] = dataclasses.field(default_factory=list)
    failures: list[str] = dataclasses.field(default_factory=list)
    capture_seconds: list[float] = dataclasses.field(default_factory=list)
    seconds: float = 0.0
    codes: list[CodeType] = dataclasses.field(default_factory=list)  # the functions that were captured from their start, in order
    skipped_codes: list[CodeType | None] = dataclasses.field(default_factory=list)  # by skip

    @functools.cached_property
    def graphs(self) -> list[LazyGraphModule]:
        return [to_graph_module(program) for program in self.programs]

    @property
    def graph_count(self) -> int:
        return len(self.programs)

    @property
    def graph_break_count(self) -> int:
        return sum(reason.count for reason in self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(program.calls for program in self.programs)

    @property
    def ops_per_graph(self) -> list[list[Any]]:
        return [[node[1] for node in program.describe(False) if node[0].startswith("call")] for program in self.programs]

    @property
    def compile_times(self) -> str:
        each = ", ".join(f"{seconds:.4f}" for seconds in self.capture_seconds)
        return f"Function, Runtimes (s)\ncapture, {each}\n"

    def lines(self) -> dict[tuple[str, int], LineStory]:
        """By (file, line): the ops captured there, the breaks, and whether it ran eagerly."""
        found: dict[tuple[str, int], LineStory] = collections.defaultdict(LineStory)
        for code in filter(None, self.skipped_codes):
            for line in _lines_of(code):
                found[code.co_filename, line].eager = True
        for i, program in enumerate(self.programs):
            for node in program.describe(False):
                if node[0].startswith("call"):
                    for place in {(frame[0], frame[1]) for frame in node[6]}:
                        found[place].ops[i].append(getattr(node[1], "__name__", str(node[1])))
        for reason in self.break_reasons:
            for file, line, _function in reason.stack[-1:]:
                found[file, line].broken.append(reason)
            for place in {(file, line) for file, line, _function in reason.stack[:-1]}:
                found[place].broken_inside.append(reason)
        return dict(found)

    def __str__(self) -> str:
        head = [_times(self.graph_count, "graph"), _times(self.op_count, "op"), _times(len(self.out_guards), "guard")]
        head += [_times(self.graph_break_count, "break"), _times(len(self.skips), "skipped frame")]
        lines = [", ".join(head) + f"; {self.seconds * 1e3:.1f} ms"]
        lines += self._source_text()
        for i, (program, where) in enumerate(zip(self.programs, self.captured)):
            names = [getattr(target, "__name__", str(target)) for target in self.ops_per_graph[i]]
            shown = " ".join(names[:12]) + (f" ... ({len(names)} in all)" if len(names) > 12 else "")
            lines.append(f"graph {i} of {where}: {_times(len(program.inputs), 'input')}, {_times(program.calls, 'op')}: {shown}")
        for i, entry in enumerate(self.break_reasons):
            times = f" ({entry.count} times)" if entry.count > 1 else ""
            lines.append(f"break {i}{times}: " + str(entry).replace("\n", "\n    "))
        for i, (entry, code) in enumerate(zip(self.skips, self.skipped_codes)):
            said = any(known.reason == entry.reason and known.stack[-1:] == entry.stack[-1:] for known in self.break_reasons)
            why = entry.title if said else str(entry).replace("\n", "\n    ")
            lines.append(f"skip {i}: {describe_code(code)} ran eagerly: {why}")
        lines += [f"recompile: {text}" for text in self.recompiles]
        lines += [f"engine failure: {text}" for text in self.failures]
        if self.out_guards:
            lines.append("guards:")
            lines += [f"  {text}" for text in self.out_guards[:_GUARDS_SHOWN]]
            if len(self.out_guards) > _GUARDS_SHOWN:
                lines.append(f"  ... ({len(self.out_guards)} in all: see out_guards)")
        return "\n".join(lines)

    def _source_text(self) -> list[str]:
        """The source with a column that says what became of each line: whole functions that were captured or skipped, and of
        the others (those inlined) the lines with something to say."""
        stories = self.lines()
        width = max([8, *(len(story.mark) for story in stories.values())])
        shown: set[tuple[str, int]] = set()
        text: list[str] = []
        for code in dict.fromkeys([*self.codes, *filter(None, self.skipped_codes)]):
            numbers = _lines_of(code)
            if any((code.co_filename, line) in shown for line in numbers):
                continue
            text += ["", describe_code(code)]
            lines = range(numbers[0], numbers[-1] + 1)
            text += [_line_text(code.co_filename, line, stories.get((code.co_filename, line)), width) for line in lines]
            shown |= {(code.co_filename, line) for line in numbers}
        rest = sorted(place for place in stories if place not in shown)
        for file in dict.fromkeys(file for file, _ in rest):
            text += ["", f"inlined from {file}"]
            text += [_line_text(file, line, stories[file, line], width) for at, line in rest if at == file]
        return [*text, ""] if text else []

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        """A listener for events."""
        stack = list(payload.get("stack") or ())
        code = payload.get("code")
        if kind == "capture":
            self.capture_seconds.append(payload.get("seconds") or 0.0)
            if code is not None and payload.get("resumed_at") is None:
                self.codes.append(code)
            if payload.get("graph") is not None:
                resumed = f", from line {payload['resumed_at']} on" if payload.get("resumed_at") is not None else ""
                self.programs.append(payload["graph"])
                self.captured.append(describe_code(code) + resumed)
            self.out_guards += guard_texts(payload)
        elif kind == "break":
            _note(self.break_reasons, _reason_of(payload, stack))
        elif kind == "skip":
            reason = _reason_of(payload, stack)
            reason.graph_break = False
            self.skips.append(reason)
            self.skipped_codes.append(code)
        elif kind == "recompile":
            self.recompiles += [str(text) for text in payload.get("failed") or ()]
        elif kind == "failure":
            self.failures.append(f"{describe_code(code)}: {payload.get('error')!r}")


def _reason_of(payload: dict[str, Any], stack: list[tuple[str, int, str]]) -> BreakReason:
    return BreakReason(describe_break(payload), stack, title=break_title(payload), id=str(payload.get("id", "")))


def _note(reasons: list[BreakReason], new: BreakReason) -> None:
    """The same reason at the same place is one, however it was reached."""
    for known in reasons:
        if known.stack[-1:] == new.stack[-1:] and known.reason == new.reason:
            known.count += 1
            return
    reasons.append(new)


def _times(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _lines_of(code: CodeType) -> list[int]:
    """The lines of a function, those of functions and comprehensions inside of it too, ascending."""
    found = {line for _start, _end, line in code.co_lines() if line}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(_lines_of(constant))
    return sorted(found | {code.co_firstlineno})


def _line_text(file: str, line: int, story: LineStory | None, width: int) -> str:
    source = linecache.getline(file, line).rstrip()
    mark, notes = "", ""
    if story is not None:
        mark = story.mark
        names = [name for names in story.ops.values() for name in names]
        notes = " ".join(names[:4]) + (f" ... ({len(names)})" if len(names) > 4 else "")
        if story.state == "broken":
            inside = [f"{reason.id} in {reason.stack[-1][2]}".strip() for reason in story.broken_inside]
            why = "; ".join(dict.fromkeys([*(f"{reason.id} {reason.title}".strip() for reason in story.broken), *inside[:3]]))
            why += f"; ... ({len(inside)} in all)" if len(inside) > 3 else ""
            notes = f"{notes}; {why}" if notes else why
    text = f"{line:5} | {mark:<{width}} | {source}"
    return f"{text:<{72 + width}}  # {notes}" if notes else text


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
