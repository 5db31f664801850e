"""Words for what happened: breaks, places, stacks."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterable
from typing import Any


def describe_code(code: Any) -> str:
    """`forward (model.py:12)` for a code object."""
    if code is None:
        return "<unknown>"
    return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"


def describe_break(payload: dict[str, Any]) -> str:
    """A break in the form of torch's messages: the reason, then explanation, hints and context where there are any."""
    lines = [str(payload.get("reason", "unknown"))]
    if payload.get("explanation"):
        lines.append(f"  Explanation: {payload['explanation']}")
    lines.extend(f"  Hint: {hint}" for hint in payload.get("hints") or ())
    if payload.get("context"):
        lines.append(f"\n  Developer debug context: {payload['context']}")
    return "\n".join(lines)


def user_stack_text(stack: Iterable[tuple[str, int, str]] | None) -> str:
    """As traceback prints it, with the source lines."""
    lines = []
    for file, line, function in stack or ():
        lines.append(f'  File "{file}", line {line}, in {function}\n')
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines).rstrip("\n")


def stack_summary(stack: Iterable[tuple[str, int, str]] | None) -> traceback.StackSummary:
    """The same as the object that torch's exceptions carry."""
    return traceback.StackSummary.from_list([traceback.FrameSummary(file, line, function) for file, line, function in stack or ()])
