"""Marks that the engine reads on functions, and the question whether it is looking."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from ._compile import CompiledModule, DisabledModule, innermost


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Never captures `fn`; with recursive, nor what it calls. A decorator with and without arguments, also for modules and classes."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, CompiledModule):
        fn = fn._orig_mod
    fn = innermost(fn)
    if isinstance(fn, torch.nn.Module):
        return DisabledModule(fn, _marked(fn.__call__, recursive, reason))
    if isinstance(fn, type):
        cls: Any = fn
        cls.__init__ = disable(cls.__init__, recursive, reason=reason)
        if any("__call__" in base.__dict__ for base in cls.__mro__):
            cls.__call__ = disable(cls.__call__, recursive, reason=reason)
        return cls
    if not callable(fn):
        raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    return _marked(fn, recursive, reason)


def _marked(fn: Callable[..., Any], recursive: bool, reason: str | None) -> Callable[..., Any]:
    def disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    functools.update_wrapper(disabled, fn)
    marks = {
        "_torchdynamo_disable": True,
        "_torchdynamo_disable_msg": reason,
        "_torchdynamo_disable_recursive": recursive,
        "_torchdynamo_orig_callable": fn,
        "_torchdynamo_wrapper_id": id(disabled),
    }
    disabled.__dict__.update(marks)
    return disabled


def is_compiling() -> bool:
    """True in code that is being captured."""
    return torch.compiler.is_compiling()
