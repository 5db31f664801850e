"""cdynamo.compile: what torch.compile is, with cdynamo as its front end."""

from __future__ import annotations

import functools
import os
import types
import warnings
import weakref
from collections.abc import Callable, Sized
from typing import Any

import torch

from . import _C
from ._backends import Backend, CompileOptions, resolve

_has_any_global_hook: Callable[[], bool] = torch.nn.modules.module._has_any_global_hook


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Compiles a function, a method, any other callable or an nn.Module; without a model, a decorator.

    fullgraph: a break is an error. dynamic: None captures numbers as they are and generalises those that change, False never
    generalises, True int arguments at once; sizes of tensors are captured as they are. backend: a name of
    torch._dynamo.list_backends(None) or a callable (gm, example_inputs). mode, options: for the backend, one or the other.
    disable: does nothing at all.
    """
    return compile_with(
        model, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable
    )  # fmt: skip


def compile_with(model: Any, **arguments: Any) -> Any:
    """As compile, with the arguments that only torch.compile's newer signature has (recompile_limit, name, ...)."""
    if model is None:

        def decorate(decorated: Any) -> Any:
            if decorated is None:
                raise RuntimeError("Model can't be None")
            return compile_with(decorated, **arguments)

        return decorate

    if arguments.get("mode") is not None and arguments.get("options") is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if arguments.get("disable") or os.environ.get("TORCHDYNAMO_DISABLE", "0") == "1":
        _require_callable(model)
        return model
    return apply(model, make_options(**arguments), arguments)


def make_options(
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    recompile_limit: int | None = None,
    **_ignored: Any,
) -> CompileOptions:
    """Checks the arguments and finds the backend. Errors are torch.compile's own."""
    if dynamic is not None and not isinstance(dynamic, bool):
        raise AssertionError(f"Expected dynamic to be a bool or None, got {type(dynamic)}")
    guard_filter = None
    if isinstance(options, dict) and "guard_filter_fn" in options:
        options = dict(options)
        guard_filter = options.pop("guard_filter_fn")
    if backend is None:
        from torch._dynamo.backends.registry import get_default_backend

        backend = get_default_backend()
    if mode is None and options is None:
        mode = "default"
    found: Backend = resolve(backend, mode, options, dynamic)
    return _shared(CompileOptions(found, bool(fullgraph), dynamic, recompile_limit, guard_filter))


_in_use: list[weakref.ref[CompileOptions]] = []


def _shared(options: CompileOptions) -> CompileOptions:
    """The same object for the same wishes: captures are shared by all compiled functions that have the code and the options in common."""
    found = None
    alive = []
    for reference in _in_use:
        other = reference()
        if other is not None:
            alive.append(reference)
            if found is None and other == options:
                found = other
    if found is None:
        found = options
        alive.append(weakref.ref(options))
    _in_use[:] = alive
    return found


def apply(model: Any, options: CompileOptions, arguments: dict[str, Any] | None = None) -> Any:
    """The compiled form of `model` under ready options."""
    if isinstance(model, CompiledModule):
        model = model._orig_mod
    model = innermost(model)
    if isinstance(model, torch.nn.Module):
        if type(model) is torch.jit._script.RecursiveScriptModule:
            raise RuntimeError(
                "torch.compile does not support compiling torch.jit.script or torch.jit.freeze models directly. "
                "Compile the original eager module instead."
            )
        return CompiledModule(model, options, arguments)
    if isinstance(model, type):
        return _compile_class(model, options)
    if isinstance(model, staticmethod):
        return staticmethod(apply(model.__func__, options, arguments))
    _require_callable(model)
    return compile_callable(model, options)


def compile_callable(function: Any, options: CompileOptions) -> Any:
    """A CompiledFunction that looks like what it wraps."""
    compiled = _engine_function(function, options)
    functools.update_wrapper(compiled, function)
    compiled.__dict__.update(
        _torchdynamo_orig_callable=function,
        _torchdynamo_wrapper_id=id(compiled),
        _is_torch_compile=True,
        get_compiler_config=functools.partial(_compiler_config, options),
    )
    return compiled


def _engine_function(function: Any, options: CompileOptions) -> _C.CompiledFunction:
    limit = -1 if options.recompile_limit is None else options.recompile_limit
    return _C.CompiledFunction(function if has_frame(function) else inlined(function), options, limit)


def has_frame(function: Any) -> bool:
    """Whether calling it runs one Python frame of its own: a function, or a method that is one."""
    if isinstance(function, types.MethodType):
        function = function.__func__
    return isinstance(function, types.FunctionType)


def inlined(function: Any) -> Callable[..., Any]:
    """A frame to capture, for callables that have none: builtins, partials, objects with __call__."""

    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


def innermost(function: Any) -> Any:
    """What an already compiled or disabled callable wraps. Bound methods and copies made by functools.wraps stay as they are."""
    while getattr(function, "_torchdynamo_wrapper_id", None) == id(function) and hasattr(function, "_torchdynamo_orig_callable"):
        if isinstance(function, torch.nn.Module) and hasattr(function, "_orig_mod"):
            function = function._orig_mod
        else:
            function = function._torchdynamo_orig_callable
    return function


def _require_callable(model: Any) -> None:
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")


def _compiler_config(options: CompileOptions) -> Any:
    get = getattr(options.backend.function, "get_compiler_config", None)
    return get() if callable(get) else None


def _compile_class(cls: Any, options: CompileOptions) -> Any:
    """Calls of its instances are compiled, as torch does it; making an instance is not."""
    if not cls.__flags__ & (1 << 9):  # Py_TPFLAGS_HEAPTYPE
        raise TypeError(f"cannot set '__call__' attribute of immutable type {cls.__name__!r}")
    if issubclass(cls, torch.nn.Module):
        cls._call_impl = compile_callable(cls._call_impl, options)
    elif any("__call__" in base.__dict__ for base in cls.__mro__):
        cls.__call__ = compile_callable(cls.__call__, options)
    return cls


_OWN_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class CompiledModule(torch.nn.Module):
    """A compiled nn.Module. Parameters, attributes and mode are the original's; names of its state carry `_orig_mod.` as torch's do."""

    _own_attributes = {"_orig_mod", "_options", "_arguments", "forward", "_forward", "__dict__"} | {
        "_torchdynamo_orig_callable", "_torchdynamo_wrapper_id", "get_compiler_config",
    }  # fmt: skip

    def __init__(self, module: torch.nn.Module, options: CompileOptions, arguments: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "_orig_mod", module)
        object.__setattr__(self, "_initialised", False)
        super().__init__()
        object.__delattr__(self, "_orig_mod")
        object.__setattr__(self, "_initialised", True)
        self._orig_mod = module
        self._options = options
        self._arguments = arguments
        self._prepare()

    def _prepare(self) -> None:
        module, options = self._orig_mod, self._options
        forward = module.forward
        calls = _engine_function(forward, options), _engine_function(module._call_impl, options)
        self.__dict__["forward"] = _C.CompiledModuleCall(module, *calls)
        if hasattr(module, "_initialize_hook"):
            self.__dict__["_forward"] = self.__dict__["forward"]
            self.__dict__["forward"] = self._forward_of_lazy
        self._torchdynamo_orig_callable = forward
        self._torchdynamo_wrapper_id = id(self)
        self.get_compiler_config = functools.partial(_compiler_config, options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state = self.__dict__
        if _has_any_global_hook():
            warnings.warn(
                "Using `torch.compile(module)` when there are global hooks on modules (e.g., from `register_module_forward_hook`); "
                "this will cause the hooks to fire an extra time for the `OptimizedModule` created by `torch.compile(module)`. "
                "If this causes undesired behavior, please try using `module.compile()`, or use the per-module hooks instead",
                stacklevel=2,
            )
        elif not (state["_forward_hooks"] or state["_forward_pre_hooks"] or state["_backward_hooks"] or state["_backward_pre_hooks"]):
            return state["forward"](*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _forward_of_lazy(self, *args: Any, **kwargs: Any) -> Any:
        module: Any = self._orig_mod
        if hasattr(module, "_initialize_hook") and callable(getattr(module, "_infer_parameters", None)):
            module._infer_parameters(module, args, kwargs)
        return self.__dict__["_forward"](*args, **kwargs)

    @property
    def training(self) -> bool:
        return self._orig_mod.training

    @training.setter
    def training(self, value: bool) -> None:
        if self._initialised:
            self._orig_mod.training = value

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self.__dict__["_modules"]["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in self._own_attributes:
            super().__setattr__(name, value)
        elif not self._initialised:
            object.__setattr__(self, name, value)
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        if hasattr(type(self), name) or name in self._own_attributes:
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if isinstance(self._orig_mod, Sized):
            return len(self._orig_mod)
        raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")

    def __dir__(self) -> list[str]:
        theirs = dir(self._orig_mod)
        return [*theirs, *(name for name in object.__dir__(self) if name not in theirs)]

    def __reduce__(self) -> Any:
        hooks = {name: self.__dict__[name] for name in _OWN_HOOKS if self.__dict__[name]}
        if self._arguments is not None:
            return (_compile_again, (self._orig_mod, self._arguments), hooks or None)
        return (CompiledModule, (self._orig_mod, self._options), hooks or None)

    def __setstate__(self, hooks: dict[str, Any]) -> None:
        self.__dict__.update(hooks)


class DisabledModule(CompiledModule):
    """A module that is never captured, whoever calls it."""

    def __init__(self, module: torch.nn.Module, call: Callable[..., Any]) -> None:
        object.__setattr__(self, "_disabled_call", call)
        super().__init__(module, CompileOptions(resolve("eager")))

    def _prepare(self) -> None:
        self.__dict__["forward"] = self.__dict__["_disabled_call"]
        self._torchdynamo_orig_callable = self._orig_mod.forward
        self._torchdynamo_wrapper_id = id(self)

    def __reduce__(self) -> Any:
        from ._decorators import disable

        return (disable, (self._orig_mod,))


def _compile_again(module: torch.nn.Module, arguments: dict[str, Any]) -> CompiledModule:
    compiled: CompiledModule = compile_with(module, **arguments)
    return compiled
