"""The two ends of the extension: what it calls in Python, and what Python calls in it."""

from __future__ import annotations

import sys
from typing import Any

from . import _C, _compile_ids, _logs, _stance
from ._backends import compile_graph
from ._config import config
from ._errors import recompile_error, recompile_limit_hit, unsupported
from ._events import on_event, wants_guards
from ._guard_filter import filter_guards
from ._own_builtins import __builtins__  # noqa: F401
from ._report import InternalError, reset_warnings


def connect() -> None:
    """Tells the engine whom to call. Done once, on import."""
    _C.set_front(
        {
            "compile_graph": _compile_graph,
            "on_event": on_event,
            "wants_guards": wants_guards,
            "filter_guards": filter_guards,
            "unsupported": _unsupported,
        }
    )
    # Strictness is ours to judge: the callback raises, after the report is written.
    _C.configure(on_miss=sync_settings, on_recompile=_on_recompile, on_limit=_on_limit, on_engine_error=_on_engine_error, strict=False)
    config.watch(sync_settings)
    sync_settings()


def sync_settings() -> None:
    """Hands the limits to the engine. torch._dynamo.config tells nobody of its changes, so this is also done around each capture."""
    _C.configure(
        recompile_limit=config.recompile_limit,
        accumulated_limit=config.accumulated_recompile_limit,
        break_every=config.break_every,
        skip_blocks=config.break_in_blocks == "skip",
    )


def reset() -> None:
    """Forgets every capture, as if nothing had been compiled. Compiled callables stay usable and capture again."""
    _C.reset()
    _stance.forget()
    reset_warnings()
    _compile_ids.reset()
    _logs.reset()
    sync_settings()
    registry = sys.modules.get("torch._inductor.cudagraph_trees")
    if registry is not None:
        registry.reset_cudagraph_trees()


def _compile_graph(program: Any, example_inputs: Any, options: Any) -> Any:
    sync_settings()
    return compile_graph(program, example_inputs, options)


def _on_recompile(function: Any, reasons: list[str]) -> None:
    payload = {"code": getattr(function, "__code__", None), "failed": reasons}
    on_event("recompile", payload)
    if config.error_on_recompile:
        raise recompile_error(payload)


def _on_limit(function: Any, limit: int, reasons: list[str], options: Any) -> None:
    payload = {"code": getattr(function, "__code__", None), "failed": reasons, "limit": limit, "limit_hit": True}
    on_event("recompile", payload)
    if config.fail_on_recompile_limit_hit or getattr(options, "fullgraph", False):
        raise recompile_limit_hit({**payload, "by_config": config.fail_on_recompile_limit_hit})


def _unsupported(payload: dict[str, Any]) -> BaseException:
    on_event("break", {**payload, "raises": True})
    return unsupported(payload)


def _on_engine_error(function: Any, what: str) -> None:
    on_event("failure", {"code": getattr(function, "__code__", None), "error": InternalError(what), "stage": "capture"})
