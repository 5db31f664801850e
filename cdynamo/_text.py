"""Words for what happened: breaks, places, stacks. The forms are those of torch's messages."""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from ._own_builtins import __builtins__  # noqa: F401

Stack = Iterable[tuple[str, int, str]]

_OWN_DIRECTORY = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LOCAL = re.compile(r"\bL\['(\w+)'\]")


def describe_code(code: Any) -> str:
    """`forward (model.py:12)` for a code object."""
    if code is None:
        return "<unknown>"
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def break_title(payload: dict[str, Any]) -> str:
    """Torch's name for the kind of break, where torch has it; else ours."""
    return str(payload.get("title") or payload.get("reason", "unknown"))


def describe_break(payload: dict[str, Any]) -> str:
    """The reason, then explanation, hints, context and where to read more, as far as the payload has them."""
    lines = [break_title(payload)]
    if payload.get("explanation"):
        lines.append(f"  Explanation: {payload['explanation']}")
    lines.extend(f"  Hint: {hint}" for hint in payload.get("hints") or ())
    if payload.get("context"):
        lines.append(f"\n  Developer debug context: {payload['context']}")
    if payload.get("id"):
        lines.append(f"\n For more details about this graph break, see docs/breaks.md#{payload['id'].lower()}")
    return "\n".join(lines)


def break_place(payload: dict[str, Any]) -> tuple[str, int]:
    """File and line of the innermost frame."""
    stack = list(payload.get("stack") or ())
    if stack:
        return stack[-1][0], stack[-1][1]
    code = payload.get("code")
    return (code.co_filename, code.co_firstlineno) if code is not None else ("<unknown>", 0)


def user_stack_text(stack: Stack | None) -> str:
    """As traceback prints it, with the source lines."""
    lines = []
    for file, line, function in stack or ():
        lines.append(f'  File "{file}", line {line}, in {function}\n')
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines).rstrip("\n")


def stack_summary(stack: Stack | None) -> traceback.StackSummary:
    """The same as the object that torch's exceptions carry."""
    return traceback.StackSummary.from_list([traceback.FrameSummary(file, line, function) for file, line, function in stack or ()])


def calling_stack() -> list[tuple[str, int, str]]:
    """The Python frames that led to the call which is being captured, the outermost first; cdynamo's own left out."""
    found = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN_DIRECTORY):
            found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]


def plain_locals(guard: str) -> str:
    """A guard's text with x for L['x'], as torch writes reasons of recompiles."""
    return _LOCAL.sub(r"\1", guard)


def recompile_text(payload: dict[str, Any]) -> str:
    """Why a function is captured again: for each earlier capture, the guard that did not hold."""
    code = payload.get("code")
    where = f"{code.co_name} in {code.co_filename}:{code.co_firstlineno}" if code is not None else "<unknown>"
    failed = "".join(f"\n    - {plain_locals(str(text))}" for text in payload.get("failed") or ())
    return f"Recompiling function {where}\n    triggered by the following guard failure(s):{failed}"
