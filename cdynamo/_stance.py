"""set_stance: what compiled functions do when they are called."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import TracebackType
from typing import Any

from . import _C
from ._backends import CompileOptions, resolve

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile")


@dataclasses.dataclass(frozen=True)
class Stance:
    stance: str = "default"
    skip_guard_eval_unsafe: bool = False
    backend: str | Callable[..., Any] | None = None


_now = Stance()
# Options with another backend, by the id of the original ones: one cache of captures for each.
_others: dict[tuple[int, Any], tuple[CompileOptions, CompileOptions]] = {}


class set_stance:
    """A function, a context manager and a decorator, as torch.compiler.set_stance; refused in compiled code.

    skip_guard_eval_unsafe: of the guards only those are run that tell the captures of a function apart, and those about types. Calls
    that nothing was captured for get an earlier capture, or an error where that is known not to fit.
    """

    _dynamo_forbidden = True

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}; there are {', '.join(STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.stance = Stance(stance, skip_guard_eval_unsafe, force_backend)
        self.before = change(self.stance)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        change(self.before)
        stance = self.stance

        @functools.wraps(function)
        def under_stance(*args: Any, **kwargs: Any) -> Any:
            before = change(stance)
            try:
                return function(*args, **kwargs)
            finally:
                change(before)

        under_stance._dynamo_forbidden = True  # type: ignore[attr-defined]
        return under_stance

    def __enter__(self) -> None:
        change(self.stance)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        change(self.before)


def change(stance: Any) -> Any:
    """Makes it the current stance and returns the one before."""
    global _now
    if _C.in_compiled_region():
        raise RuntimeError("attempted to set_stance in a torch.compile region")
    before, _now = _now, stance
    _C.configure(
        stance=stance.stance,
        force_backend=stance.backend is not None,
        other_backend=other_backend,
        only_differing=stance.skip_guard_eval_unsafe,
    )
    return before


change._dynamo_forbidden = True  # type: ignore[attr-defined]


def other_backend(options: CompileOptions, name: str | None) -> CompileOptions:
    """The same options with backend `name`, or with the one that the stance forces. The same object for the same question."""
    backend = _now.backend if name is None else name
    found = _others.get((id(options), backend))
    if found is None:
        found = _others[id(options), backend] = (options, dataclasses.replace(options, backend=resolve(backend)))
    return found[1]


def forget() -> None:
    _others.clear()
