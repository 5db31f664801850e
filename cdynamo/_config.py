"""Settings. `cdynamo.config` is an object with one attribute per setting."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ._own_builtins import __builtins__  # noqa: F401

# name: (default, whether torch._dynamo.config has it too)
_SETTINGS: dict[str, tuple[Any, bool]] = {
    # Raise when the engine itself fails, instead of a warning, a report and an eager run.
    "strict": (os.environ.get("CDYNAMO_STRICT", "0") not in ("", "0"), False),
    # Where crash reports are written.
    "report_directory": (os.environ.get("CDYNAMO_REPORTS", "cdynamo-reports"), False),
    # "skip": frames that break inside loops, `with` and `try` run eagerly, and a break in an inlined call is one in its caller,
    # as torch._dynamo has it; for comparisons. "continue": they go on after the break.
    "break_in_blocks": ("continue", False),
    # print(), logging and warnings.warn() run after the graph where nobody can see the difference; False: they split the graph.
    "defer_output": (True, False),
    # Break every capture at its nth instruction; for tests of breaks.
    "break_every": (int(os.environ.get("CDYNAMO_BREAK_EVERY") or 0), False),
    # How many captures one code object may have before it runs eagerly.
    "recompile_limit": (8, True),
    "accumulated_recompile_limit": (256, True),
    "fail_on_recompile_limit_hit": (False, True),
    "error_on_recompile": (False, True),
    "suppress_errors": (False, True),
    "capture_scalar_outputs": (False, True),
    "capture_dynamic_output_shape_ops": (False, True),
    # NumPy's functions and arrays become torch._numpy's and tensors in graphs.
    "trace_numpy": (True, True),
    "assume_static_by_default": (True, True),
    "automatic_dynamic_shapes": (True, True),
    "allow_rnn": (False, True),
    "verbose": (False, True),
    "disable": (False, True),
}
_ALIASES = {"cache_size_limit": "recompile_limit", "accumulated_cache_size_limit": "accumulated_recompile_limit"}


class Config:
    """A setting that was never assigned here follows torch._dynamo.config, where that is loaded and has it."""

    __slots__ = ("_own", "_watcher")
    _own: dict[str, Any]
    _watcher: Callable[[], None]

    def __init__(self) -> None:
        object.__setattr__(self, "_own", {})
        object.__setattr__(self, "_watcher", lambda: None)

    def watch(self, watcher: Callable[[], None]) -> None:
        """`watcher` is called after every change that is made here."""
        object.__setattr__(self, "_watcher", watcher)

    def __getattr__(self, name: str) -> Any:
        name = _ALIASES.get(name, name)
        if name not in _SETTINGS:
            raise AttributeError(f"cdynamo.config has no setting {name!r}; it has {', '.join(_SETTINGS)}")
        if name in self._own:
            return self._own[name]
        default, shared = _SETTINGS[name]
        theirs = sys.modules.get("torch._dynamo.config") if shared else None
        return default if theirs is None else getattr(theirs, name, default)

    def __setattr__(self, name: str, value: Any) -> None:
        name = _ALIASES.get(name, name)
        if name not in _SETTINGS:
            raise AttributeError(f"cdynamo.config has no setting {name!r}; it has {', '.join(_SETTINGS)}")
        self._own[name] = value
        self._watcher()

    def __delattr__(self, name: str) -> None:
        self._own.pop(_ALIASES.get(name, name), None)
        self._watcher()

    def __dir__(self) -> list[str]:
        return [*_SETTINGS, *_ALIASES, "patch"]

    def __repr__(self) -> str:
        return "config(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in _SETTINGS) + ")"

    @contextlib.contextmanager
    def patch(self, **changes: Any) -> Iterator[None]:
        """Settings for the length of a `with` block (or of a call, as a decorator)."""
        before = dict(self._own)
        try:
            for name, value in changes.items():
                setattr(self, name, value)
            yield
        finally:
            object.__setattr__(self, "_own", before)
            self._watcher()


config = Config()
