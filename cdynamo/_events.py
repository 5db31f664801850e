"""Events of the engine, and their views: counters, logs, reports.

The engine calls on_event(kind, payload) with

    start      code, frame (the code object that is captured, where it is one of cdynamo's own that goes on after a break):
               a capture begins. The answer is its id, a str such as "0/1"
    break      code, reason (its name in the table of reasons), id, title, explanation, context, hints, stack;
               raises: the break is an error (fullgraph). The capture up to the break follows, or a skip
    capture    code, graph (GraphProgram or None), guards (a list of str, or a function that makes one), guard_count, guard_tree
               (lines), emitted (the code that runs instead, or None), seconds, reason ("return_value", or "graph_break" where
               it ended in a break)
    skip       as break: the frame, or what follows a break in it, runs eagerly
    recompile  code, failed (list of str: for each earlier capture, the guard that did not hold), limit_hit, limit
    failure    code, error (exception), stage, arguments (list of str), stack

`code` is the user's own. `stack` is a list of (file, line, function), the outermost first. A capture of what follows a break
has `resumed_at`, the line where it goes on. What on_event raises, the user's call raises.
"""

from __future__ import annotations

import collections
import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from . import _compile_ids, _logs
from ._own_builtins import __builtins__  # noqa: F401
from ._report import after_failure
from ._text import describe_break

Listener = Callable[[str, dict[str, Any]], None]

#: As torch._dynamo.utils.counters: {"stats": {"calls_captured": ..., "unique_graphs": ...}, "graph_break": {reason: ...}, ...}
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)

_listeners: list[Listener] = []
_lock = threading.Lock()


def on_event(kind: str, payload: dict[str, Any]) -> Any:
    """The engine's only way to say what happened."""
    view = _VIEWS.get(kind)
    answer = view(payload) if view is not None else None
    for listener in tuple(_listeners):
        listener(kind, payload)
    if kind == "failure":
        after_failure(payload)
    return answer


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Also calls `listener` for every event of the block."""
    with _lock:
        _listeners.append(listener)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(listener)


def wants_guards() -> int:
    """Whether somebody looks at the texts of guards, which cost more than the guards: 1 for the list, 2 for the tree too."""
    return 2 if _logs.logger("guards") is not None else 1 if _listeners else 0


MOST_KEYS = 1000  # of one group: texts may name what is another thing in each call


def count(group: str, key: str, by: int = 1) -> None:
    """In our counters, and in torch's where torch._dynamo is loaded."""
    if len(counters[group]) >= MOST_KEYS and key not in counters[group]:
        key = "others"
    counters[group][key] += by
    theirs = sys.modules.get("torch._dynamo.utils")
    if theirs is not None and hasattr(theirs, "counters"):
        theirs.counters[group][key] += by


def _on_start(payload: dict[str, Any]) -> str:
    """Its answer is how the engine names this capture in reasons of recompiles."""
    count("frames", "total")
    compile_id = _compile_ids.start(payload.get("frame") or payload["code"])
    _logs.on_start(payload)
    return str(compile_id)


def _on_capture(payload: dict[str, Any]) -> None:
    count("frames", "ok")
    graph = payload.get("graph")
    if graph is not None:
        count("stats", "calls_captured", graph.calls)
        count("stats", "unique_graphs")
    if payload.get("resumed_at") is not None:
        count("resumes", f"torch_dynamo_resume_in_{payload['code'].co_name}_at_{payload['resumed_at']}")
    _logs.on_capture(payload)


def _on_break(payload: dict[str, Any]) -> None:
    text = describe_break(payload)
    if payload.get("raises"):
        counters["unimplemented"][text] += 1  # torch's own are counted by its exception
    else:
        count("graph_break", text)
    _logs.on_break(payload)


def _on_skip(payload: dict[str, Any]) -> None:
    count("skips", str(payload.get("reason", "unknown")))
    _logs.on_skip(payload)


def _on_recompile(payload: dict[str, Any]) -> None:
    for text in payload.get("failed") or ():
        count("recompiles", str(text))
    _logs.on_recompile(payload)


_VIEWS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "start": _on_start,
    "capture": _on_capture,
    "break": _on_break,
    "skip": _on_skip,
    "recompile": _on_recompile,
}
