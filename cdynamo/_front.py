"""The two ends of the extension: what it calls in Python, and what Python calls in it."""

from __future__ import annotations

import sys

from . import _C
from ._backends import compile_graph
from ._config import config
from ._errors import recompile_limit_hit, unsupported
from ._events import on_event
from ._report import InternalError, reset_warnings


def connect() -> None:
    """Tells the engine whom to call. Done once, on import."""
    _C.set_front(
        {
            "compile_graph": compile_graph,
            "on_event": on_event,
            "unsupported": unsupported,
            "recompile_limit_hit": recompile_limit_hit,
            "internal_error": InternalError,
            "config": config,
        }
    )


def reset() -> None:
    """Forgets every capture, as if nothing had been compiled. Compiled callables stay usable and capture again."""
    _C.reset()
    reset_warnings()
    registry = sys.modules.get("torch._inductor.cudagraph_trees")
    if registry is not None:
        registry.reset_cudagraph_trees()
