"""Marks that the engine reads on functions, controls inside them, and the question whether it is looking."""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

import torch

from . import _C
from ._compile import CompiledModule, DisabledModule, innermost

# ---- controls inside functions: nothing in eager code ------------------------------------------------------------------


def graph_break(msg: str = "") -> None:
    """Ends the graph here; capturing goes on after the call."""


def skip_frame(msg: str = "") -> None:
    """The function that calls it runs eagerly."""


def step_unsupported(msg: str = "") -> None:
    """Ends the graph here; the rest of the function runs eagerly."""


def is_compiling() -> bool:
    """True in code that is being captured."""
    return torch.compiler.is_compiling()


# ---- disable -----------------------------------------------------------------------------------------------------------


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None, wrapping: bool = True) -> Any:
    """Never captures `fn`; with recursive, nor what it calls. A decorator with and without arguments, also for modules and classes."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason, wrapping=wrapping)
    if isinstance(fn, CompiledModule):
        fn = fn._orig_mod
    fn = innermost(fn)
    if isinstance(fn, torch.nn.Module):
        return DisabledModule(fn, _disabled(fn.__call__, recursive, reason))
    if isinstance(fn, type):
        cls: Any = fn
        names = ["__init__"]
        if any("__call__" in base.__dict__ for base in cls.__mro__):
            names += ["__call__"]
        if issubclass(cls, torch.nn.Module):
            names += ["_call_impl"]
        for name in names:
            setattr(cls, name, disable(getattr(cls, name), recursive, reason=reason))
        return cls
    if not callable(fn):
        raise AssertionError(f"A callable function is expected, but {type(fn)} is provided.")
    return _disabled(fn, recursive, reason, wrapping)


def _disabled(fn: Callable[..., Any], recursive: bool, reason: str | None, wrapping: bool = True) -> Callable[..., Any]:
    def disabled(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    if wrapping:
        functools.update_wrapper(disabled, fn)
    disabled.__dict__.update(
        _torchdynamo_disable=True,
        _torchdynamo_disable_msg=reason,
        _torchdynamo_disable_recursive=recursive,
        _torchdynamo_orig_callable=fn,
        _torchdynamo_wrapper_id=id(disabled),
    )
    return disabled


def run(fn: Any = None) -> Any:
    """Calls of `fn` use captures that are there, and make no new ones. A decorator with and without arguments."""
    if fn is None:
        return run
    if not callable(fn):
        raise AssertionError("fn must be callable")

    @functools.wraps(fn)
    def run_only(*args: Any, **kwargs: Any) -> Any:
        _C.run_only(1)
        try:
            return fn(*args, **kwargs)
        finally:
            _C.run_only(-1)

    run_only._torchdynamo_orig_callable = fn  # type: ignore[attr-defined]
    if inspect.isfunction(fn):
        _mark(run_only, fn)  # inside a capture nothing else is captured
    return run_only


# ---- what the engine does with a function that it meets ----------------------------------------------------------------

#: id of a callable: "allow", "disallow", or the function that is traced in its place. Read by the engine.
marks: dict[int, Any] = {}
_immortal: list[Any] = []


def _mark(fn: Any, what: Any) -> Any:
    if id(fn) not in marks:
        try:
            weakref.finalize(fn, marks.pop, id(fn), None)
        except TypeError:
            _immortal.append(fn)
    marks[id(fn)] = what
    return fn


def _each(decorate: Callable[[Any], Any], fn: Any, name: str) -> Any:
    if isinstance(fn, (list, tuple)):
        return [decorate(one) for one in fn]
    if not callable(fn):
        raise AssertionError(f"{name} expects a callable")
    return None


def allow_in_graph(fn: Any) -> Any:
    """Calls of `fn` go into the graph as they are; nobody looks inside."""
    many = _each(allow_in_graph, fn, "allow_in_graph")
    if many is not None:
        return many
    if _is_of_torch(fn):
        marks.pop(id(fn), None)  # it is allowed by itself
        return fn
    return _mark(fn, "allow")


def _is_of_torch(fn: Any) -> bool:
    return str(getattr(fn, "__module__", None) or type(fn).__module__).partition(".")[0] in ("torch", "builtins")


def disallow_in_graph(fn: Any) -> Any:
    """Calls of `fn`, an operation of torch or one that was allowed, break the graph."""
    many = _each(disallow_in_graph, fn, "disallow_in_graph")
    if many is not None:
        return many
    if not _is_of_torch(fn) and marks.get(id(fn)) != "allow":
        raise RuntimeError("disallow_in_graph is expected to be used on an already allowed callable (like torch.* ops).")
    return _mark(fn, "disallow")


def forbid_in_graph(fn: Any) -> Any:
    """Meeting a call of `fn` while capturing is an error."""
    many = _each(forbid_in_graph, fn, "forbid_in_graph")
    if many is not None:
        return many
    fn._dynamo_forbidden = True
    return fn


def nonstrict_trace(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Calls go into the graph as they are, with containers of tensors in and out; AOTAutograd looks inside."""
    if not callable(fn):
        raise AssertionError("nonstrict_trace expects a callable")

    @functools.wraps(fn)
    def opaque(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    _mark(opaque, "allow")
    return opaque


def assume_constant_result(fn: Any) -> Any:
    """`fn` is called once, while capturing; what it returns is part of the capture."""
    fn._dynamo_marked_constant = True
    return fn


def substitute_in_graph(original: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False) -> Callable[[Any], Any]:
    """A decorator: the function is traced where the program calls `original`, which is mostly written in C."""
    if not callable(original) or isinstance(original, type):
        raise TypeError(f"substitute_in_graph expects a function but got {type(original)!r}")

    def decorate(traceable: Any) -> Any:
        if not inspect.isfunction(traceable):
            raise TypeError(f"@substitute_in_graph(...) expects a function but got {type(traceable)!r}")
        if not skip_signature_check:
            _require_same_parameters(original, traceable)

        @functools.wraps(traceable)
        def calls_original(*args: Any, **kwargs: Any) -> Any:
            return original(*args, **kwargs)

        calls_original.__dict__.update(__torch_dynamo_original__=original, __torch_dynamo_polyfill__=traceable)
        substitute(original, calls_original)
        return calls_original

    return decorate


def substitute(original: Any, calls_original: Any) -> None:
    """Tells the engine about what a substitute_in_graph, ours or torch's, has made."""
    for fn in (original, calls_original):
        _mark(fn, calls_original.__torch_dynamo_polyfill__)


def _require_same_parameters(original: Any, traceable: Any) -> None:
    try:
        theirs = inspect.signature(original)
    except ValueError:
        return
    ours = inspect.signature(traceable)

    def shape(signature: inspect.Signature) -> list[Any]:
        stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [(p.name, p.kind is p.KEYWORD_ONLY, p.default) for p in signature.parameters.values() if p.kind not in stars]

    if shape(theirs) != shape(ours) and shape(theirs) and shape(ours):
        raise TypeError(f"Signature mismatch between {original} and {traceable}: {theirs} != {ours}")


# ---- error_on_graph_break ----------------------------------------------------------------------------------------------

_local = threading.local()


def _get_error_on_graph_break() -> bool:
    return getattr(_local, "error_on_graph_break", False)


def _set_error_on_graph_break(value: bool) -> None:
    _local.error_on_graph_break = value


class error_on_graph_break:
    """A break inside is an error, or (False) is none, unless fullgraph=True. A context manager and a decorator."""

    def __init__(self, error_on_graph_break: bool) -> None:
        self.value = error_on_graph_break
        self.before: list[bool] = []

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return functools.wraps(function)(inner)

    def __enter__(self) -> None:
        self.before.append(_get_error_on_graph_break())
        _set_error_on_graph_break(self.value)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        _set_error_on_graph_break(self.before.pop())


# ---- sizes -------------------------------------------------------------------------------------------------------------


def _mark_sizes(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...], name: str) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} expects a tensor but received {type(tensor)}")
    attribute = f"_dynamo_{name.partition('_')[2]}_indices"
    if not hasattr(tensor, attribute):
        setattr(tensor, attribute, set())
    getattr(tensor, attribute).update((index,) if isinstance(index, int) else index)
    tensor._has_dynamo_dim_marking = True  # type: ignore[attr-defined]


@forbid_in_graph
def mark_dynamic(t: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """A hint that these sizes will change."""
    _mark_sizes(t, index, "mark_dynamic")


def mark_static(t: Any, index: int | list[int] | tuple[int, ...] | None = None) -> Any:
    """These sizes (all without an index) will not change; for an nn.Module class: its instances' numbers will not."""
    if isinstance(t, type) and issubclass(t, torch.nn.Module):
        t._dynamo_marked_static = True  # type: ignore[attr-defined]
        return t
    _mark_sizes(t, range(t.dim()) if index is None else index, "mark_static")  # type: ignore[arg-type]
    return None
