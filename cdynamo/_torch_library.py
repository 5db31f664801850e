"""Functions of torch as Python that the interpreter traces, and what graphs call (see polyfills.py)."""

from __future__ import annotations

import inspect

import torch

from cdynamo._own_builtins import __builtins__  # type: ignore[attr-defined,no-redef] # noqa: F401

# ---- torch.autograd ----


# Before 2.13 they are given to the function a second time, and refused.
_KEEPS_KEYWORDS = torch.torch_version.TorchVersion(torch.__version__) < "2.13"


def function_apply(cls, *args, **kwargs):
    """torch.autograd.Function.apply outside of torch.func's transforms."""
    if cls.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context:
        args, left = _with_defaults(cls.forward, args, kwargs)
        if not _KEEPS_KEYWORDS:
            kwargs = left
    return super(torch.autograd.Function, cls).apply(*args, **kwargs)


def _with_defaults(function, args, kwargs):
    code = getattr(function, "__code__", None)
    if code is not None and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) and not code.co_kwonlyargcount:
        names = code.co_varnames[code.co_posonlyargcount : code.co_argcount]
        defaults = function.__defaults__ or ()
        values, given = list(args), dict(kwargs)
        for i in range(len(args), code.co_argcount):
            name = code.co_varnames[i]
            if name in names and name in given:
                values.append(given.pop(name))
            elif i >= code.co_argcount - len(defaults):
                values.append(defaults[i - code.co_argcount])
            else:
                break
        if not given and len(values) == code.co_argcount:
            return values, {}
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


class FunctionContext(torch.autograd.function.FunctionCtx):
    """The ctx of a torch.autograd.Function whose forward and backward are traced."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True

    @property
    def saved_tensors(self):
        return self.to_save


class PendingHandle:
    """The handle of a hook that is registered after the graph: what is asked of it is asked of the real one, after a break."""

    def __getattr__(self, name):
        return attribute_of_handle(self, name)

    def __setattr__(self, name, value):
        return attribute_of_handle(self, "__setattr__")(name, value)

    def __enter__(self):
        return attribute_of_handle(self, "__enter__")()

    def __exit__(self, kind, value, traceback):
        return attribute_of_handle(self, "__exit__")(kind, value, traceback)


def attribute_of_handle(handle, name):
    """Not traced: the interpreter breaks here, and the handle is the real one then."""
    return getattr(handle, name)


# ---- what graphs call --------------------------------------------------------------------------------------------------


def check_with_text(name, condition, text):
    """torch._check or one of its like, with a message that was known when the graph was captured."""
    getattr(torch, name)(condition, lambda: text)


# ---- torch functions ---------------------------------------------------------------------------------------------------


class _TorchFunctionState:
    def __init__(self, state):
        self.state = state

    def __enter__(self):
        self.before = torch._C._get_torch_function_state()
        if self.before != torch._C._TorchFunctionState.ALL_DISABLED:
            torch._C._set_torch_function_state(self.state)

    def __exit__(self, kind, value, traceback):
        torch._C._set_torch_function_state(self.before)


class _Listed:
    """A set of functions that is only asked whether it has one."""

    def __init__(self, has):
        self.has = has

    def __contains__(self, function):
        return self.has(function)


# Both are answered by the interpreter, and run where a capture breaks here.
def is_nowrap_function(function):
    return function in torch.overrides.get_default_nowrap_functions()


def is_device_constructor(function):
    return function in torch.utils._device._device_constructors()


def get_default_nowrap_functions():
    return _Listed(is_nowrap_function)


def device_constructors():
    return _Listed(is_device_constructor)


def disable_torch_function_subclass():
    return _TorchFunctionState(torch._C._TorchFunctionState.SUBCLASSES_DISABLED)


def disable_torch_function():
    return _TorchFunctionState(torch._C._TorchFunctionState.ALL_DISABLED)


def device_enter(self):
    """with torch.device(...): factory functions make their tensors there."""
    torch._C._push_on_torch_function_stack(torch.utils._device.DeviceContext(self))
    return self


def device_exit(self, kind, value, traceback):
    torch._C._pop_torch_function_stack()


def group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """torch._C._group_tensors_by_device_and_dtype."""
    groups = {}
    for i, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = groups[key]
        for tensors, grouped in zip(tensorlistlist, lists):
            if tensors:
                grouped.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups
