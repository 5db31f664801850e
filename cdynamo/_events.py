"""Events of the engine, and their views: counters, logs, reports.

The engine calls on_event(kind, payload) with

    capture    code, graph (GraphProgram or None), guards (a list of str, or a function that makes one), seconds,
               reason ("return_value" or why the capture ended there)
    break      code, reason (its name in the table of reasons), explanation, context, hints, stack
    skip       code, reason, explanation, stack
    recompile  code, failed (list of str: for each earlier capture, the guard that did not hold), limit_hit, limit
    failure    code, error (exception), stage, arguments (list of str), stack

`stack` is a list of (file, line, function), the outermost first. What on_event raises, the user's call raises.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch._logging

from ._report import after_failure
from ._text import describe_break, describe_code, user_stack_text

Listener = Callable[[str, dict[str, Any]], None]

#: As torch._dynamo.utils.counters: {"stats": {"calls_captured": ..., "unique_graphs": ...}, "graph_break": {reason: ...}, ...}
counters: collections.defaultdict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)

_LOG_NAMES = ("graph_breaks", "recompiles", "guards", "graph_code")
_loggers: dict[str, logging.Logger] = {}
_listeners: list[Listener] = []
_lock = threading.Lock()


def on_event(kind: str, payload: dict[str, Any]) -> None:
    """The engine's only way to say what happened."""
    view = _VIEWS.get(kind)
    if view is not None:
        view(payload)
    for listener in tuple(_listeners):
        listener(kind, payload)
    if kind == "failure":
        after_failure(payload)


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


def wants_guards() -> bool:
    """Whether somebody looks at the texts of guards, which cost more than the guards."""
    return bool(_listeners) or logger("guards") is not None


def count(group: str, key: str, by: int = 1) -> None:
    """In our counters, and in torch's where torch._dynamo is loaded."""
    counters[group][key] += by
    theirs = sys.modules.get("torch._dynamo.utils")
    if theirs is not None and hasattr(theirs, "counters"):
        theirs.counters[group][key] += by


def logger(name: str) -> logging.Logger | None:
    """The logger of an artifact, or None while nobody asked for it (TORCH_LOGS, torch._logging.set_logs or CDYNAMO_LOGS)."""
    found = _loggers.get(name)
    if found is None:
        found = _loggers[name] = _make_logger(name)
    return found if found.isEnabledFor(logging.DEBUG) else None


def _make_logger(name: str) -> logging.Logger:
    made: logging.Logger = torch._logging.getArtifactLogger(  # type: ignore[attr-defined]
        "cdynamo", name
    )
    wanted = [part.strip().lstrip("+") for part in os.environ.get("CDYNAMO_LOGS", "").split(",")]
    if name in wanted or "all" in wanted:
        made.setLevel(logging.DEBUG)
        if not made.handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(f"[cdynamo] [{name}] %(message)s"))
            made.addHandler(handler)
            made.propagate = False
    return made


def _on_capture(payload: dict[str, Any]) -> None:
    count("frames", "total")
    count("frames", "ok")
    graph = payload.get("graph")
    if graph is not None:
        count("stats", "calls_captured", graph.calls)
        count("stats", "unique_graphs")
        if log := logger("graph_code"):
            from ._fx import to_graph_module

            text = to_graph_module(graph).print_readable(print_output=False)
            log.debug("%s\n%s", describe_code(payload.get("code")), text)
    if log := logger("guards"):
        log.debug("%s\n  %s", describe_code(payload.get("code")), "\n  ".join(guard_texts(payload)))


def guard_texts(payload: dict[str, Any]) -> list[str]:
    guards = payload.get("guards") or []
    return list(guards()) if callable(guards) else list(guards)


def _on_break(payload: dict[str, Any]) -> None:
    count("graph_break", describe_break(payload))
    if log := logger("graph_breaks"):
        stack = user_stack_text(payload.get("stack"))
        log.debug("Graph break in user code\n%s\n%s", describe_break(payload), f"User code traceback:\n{stack}" if stack else "")


def _on_skip(payload: dict[str, Any]) -> None:
    count("frames", "total")
    count("skips", str(payload.get("reason", "unknown")))
    if log := logger("graph_breaks"):
        log.debug("Frame skipped: %s\n%s", describe_code(payload.get("code")), describe_break(payload))


def _on_recompile(payload: dict[str, Any]) -> None:
    failed = [str(text) for text in payload.get("failed") or ()]
    for text in failed:
        count("recompiles", text)
    if payload.get("limit_hit"):
        logging.getLogger("cdynamo").warning(
            "%s hit the recompile limit; it runs eagerly from now on. Last reason: %s",
            describe_code(payload.get("code")), failed[0] if failed else "unknown",
        )  # fmt: skip
    if log := logger("recompiles"):
        log.debug(
            "Recompiling %s\n    triggered by the following guard failure(s):\n    - %s", describe_code(payload.get("code")), "\n    - ".join(failed)
        )


_VIEWS: dict[str, Callable[[dict[str, Any]], None]] = {
    "capture": _on_capture,
    "break": _on_break,
    "skip": _on_skip,
    "recompile": _on_recompile,
}
