"""What an op returns, asked of FakeTensor: the slow way, for ops without a C++ rule."""

from __future__ import annotations

import logging
from typing import Any

import torch


class Described:
    """A tensor operand: a meta tensor with its sizes and strides, and what else eager would see of it."""

    __slots__ = ("meta", "device", "requires_grad", "is_leaf", "is_inference", "is_conj", "is_neg")

    def __init__(self, meta, device, requires_grad, is_leaf, is_inference, is_conj, is_neg) -> None:
        self.meta = meta
        self.device = device
        self.requires_grad = requires_grad
        self.is_leaf = is_leaf
        self.is_inference = is_inference
        self.is_conj = is_conj
        self.is_neg = is_neg


_mode = None
_log = logging.getLogger("torch._subclasses.fake_tensor")  # it logs each op that raises: we raise it ourselves
_unknown_errors: tuple[type[Exception], ...] = ()


def _fake_mode():
    global _mode, _unknown_errors
    if _mode is None:
        from torch._subclasses import fake_tensor

        _mode = fake_tensor.FakeTensorMode(allow_non_fake_inputs=False)
        _unknown_errors = (
            fake_tensor.DataDependentOutputException,
            fake_tensor.DynamicOutputShapeException,
            fake_tensor.UnsupportedFakeTensorException,
            fake_tensor.UnsupportedOperatorException,
            NotImplementedError,
        )
    return _mode


def _make(mode, described: Described, writable: bool):
    from torch._subclasses.fake_tensor import FakeTensor

    with torch.inference_mode(described.is_inference):
        fake: torch.Tensor = FakeTensor(mode, described.meta, described.device)
        if described.is_conj:
            fake = fake.conj()
        if described.is_neg:
            fake = torch._neg_view(fake)
    if described.requires_grad:
        if described.is_leaf or not writable:
            fake.requires_grad_()
        else:
            # Non-leaf, and not a view of a leaf, so that it may be written: a write makes it one.
            with torch.enable_grad(), mode:
                one = torch.zeros((), dtype=fake.dtype, device=fake.device, requires_grad=True)
                fake.add_(one)
    return fake


def _describe(value: Any, operands: dict[int, Described]):
    if value is None:
        return ("none",)
    if isinstance(value, torch.Tensor):
        same = operands.get(id(value))
        if same is not None:
            return ("same", same)
        return (
            "tensor",
            value.dtype,
            value.device,
            value.layout,
            value.requires_grad,
            value.is_leaf,
            value.is_inference(),
            value.is_conj(),
            value.is_neg(),
            tuple(value.shape),
            tuple(value.stride()),
            value.storage_offset(),
        )
    if type(value) is dict:
        return ("dict", tuple(value), *(_describe(item, operands) for item in value.values()))
    if isinstance(value, torch.Size) or not isinstance(value, (tuple, list)):
        return ("const", value)
    items = tuple(_describe(item, operands) for item in value)
    if type(value) is tuple:
        return ("tuple", *items)
    if type(value) is list:
        return ("list", *items)
    return ("namedtuple", type(value), *items)


def _writes(target: Any, kwargs: dict[str, Any]) -> bool:
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if kwargs.get("inplace") is True or "out" in kwargs:
        return True
    return (
        (name.endswith("_") and not name.endswith("__"))
        or name in ("setitem", "__setitem__")
        or (getattr(target, "__module__", "") == "_operator" and name.startswith("i") and name not in ("invert", "index", "is_", "is_not", "inv"))
    )


def infer(target: Any, is_method: bool, args: tuple[Any, ...], kwargs: dict[str, Any], grad_enabled: bool):
    """Runs the op on fake tensors. Returns a description: a tuple whose first item is a tag.

    ("tensor", dtype, device, layout, requires_grad, is_leaf, is_inference, conj, neg, sizes, strides, offset),
    ("same", Described) for a result that is an unchanged operand, ("tuple" | "list", *items), ("namedtuple", class, *items), ("dict", keys, *items),
    ("none",), ("const", object), ("unknown", reason) and ("raise", exception).
    """
    mode = _fake_mode()
    writable = _writes(target, kwargs)
    made: dict[int, Any] = {}
    operands: dict[int, Described] = {}
    keep = []

    def fake(value):
        if isinstance(value, Described):
            known = made.get(id(value))
            if known is None:
                known = made[id(value)] = _make(mode, value, writable)
                keep.append(known)
                if not writable:
                    operands[id(known)] = value
            return known
        if isinstance(value, slice):
            return slice(fake(value.start), fake(value.stop), fake(value.step))
        if isinstance(value, dict):
            return {key: fake(item) for key, item in value.items()}
        if type(value) in (tuple, list):
            return type(value)(fake(item) for item in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(fake(item) for item in value))
        return value

    was_disabled = _log.disabled
    _log.disabled = True
    try:
        args = fake(args)
        kwargs = fake(kwargs)
        with torch.set_grad_enabled(grad_enabled), mode:
            result = getattr(args[0], target)(*args[1:], **kwargs) if is_method else target(*args, **kwargs)
        return _describe(result, operands)
    except _unknown_errors as error:
        return ("unknown", f"{type(error).__name__}: {error}")
    except (AssertionError, ImportError, MemoryError) as error:
        return ("unknown", f"{type(error).__name__}: {error}")
    except Exception as error:
        if type(error).__module__.startswith("torch._"):
            return ("unknown", f"{type(error).__name__}: {error}")
        if isinstance(error, TypeError) and len(error.args) == 1 and isinstance(error.args[0], str):
            error.args = (error.args[0].replace("FakeTensor", "Tensor"),)  # as the user's own operand is called
        return ("raise", error.with_traceback(None))
    finally:
        _log.disabled = was_disabled
