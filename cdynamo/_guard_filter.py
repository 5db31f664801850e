"""guard_filter_fn of torch.compile's options: entries such as torch's filters expect, made from what the engine guards."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ._own_builtins import __builtins__  # noqa: F401


@dataclasses.dataclass(frozen=True)
class GuardSource:
    """As much of torch's Source as its own filters ask."""

    name: str
    _owners: tuple[Any, ...]

    def is_unspecialized_nn_module(self) -> bool:
        return any(isinstance(owner, torch.nn.Module) for owner in self._owners)

    def is_unspecialized_builtin_nn_module(self) -> bool:
        inner = [owner for owner in self._owners if isinstance(owner, torch.nn.Module)]
        return bool(inner) and type(inner[-1]).__module__.startswith(("torch.nn.", "torch.ao."))


@dataclasses.dataclass(frozen=True)
class OriginalGuard:
    name: str
    source: GuardSource


@dataclasses.dataclass(frozen=True)
class GuardFilterEntry:
    name: str
    has_value: bool
    value: Any
    guard_type: str
    derived_guard_types: tuple[str, ...]
    is_global: bool
    orig_guard: OriginalGuard


def filter_guards(filter_fn: Callable[..., Any], rows: Sequence[tuple[str, str, bool, tuple[Any, ...]]]) -> Sequence[bool]:
    """Asks the user's function about all guards; rows are (name, kind, is_global, values on the way to what is guarded)."""
    entries = []
    for name, kind, is_global, values in rows:
        has_value = bool(values) and kind != "GLOBAL_STATE"
        guard = OriginalGuard(name, GuardSource(name, values))
        entries.append(GuardFilterEntry(name, has_value, values[-1] if has_value else None, kind, (), is_global, guard))
    flags: Sequence[bool] = filter_fn(entries)
    return flags
