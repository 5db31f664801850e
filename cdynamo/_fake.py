"""What an op returns, asked of FakeTensor: the slow way, for ops without a C++ rule."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch


class Described:
    """A tensor operand: a meta tensor with its sizes and strides, and what else eager would see of it."""

    __slots__ = ("meta", "device", "requires_grad", "is_leaf", "is_inference", "is_conj", "is_neg", "is_scalar")

    def __init__(self, meta, device, requires_grad, is_leaf, is_inference, is_conj, is_neg) -> None:
        self.meta = meta
        self.device = device
        self.requires_grad = requires_grad
        self.is_leaf = is_leaf
        self.is_inference = is_inference
        self.is_conj = is_conj
        self.is_neg = is_neg
        self.is_scalar = False  # of NumPy


class Number:
    """An operand that is a number of the graph: only its type (int, float, bool) is known."""

    __slots__ = ("type",)

    def __init__(self, type) -> None:
        self.type = type


class _Unknown(Exception):
    pass


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


def _mode_for_numbers():
    """A mode of its own for each call: its numbers stand for nothing else."""
    _fake_mode()
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    return FakeTensorMode(allow_non_fake_inputs=False, shape_env=ShapeEnv())


def _make_number(mode, number: Number):
    env = mode.shape_env
    if number.type is bool:
        return env.create_unbacked_symbool()
    return env.create_unbacked_symint() if number.type is int else env.create_unbacked_symfloat()


_PLAIN_TYPES = (bool, int, float, complex, str, bytes, torch.Size, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.qscheme)
_NUMBER_TYPES = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


def _describe(value: Any, operands: dict[int, Described]):
    if value is None:
        return ("none",)
    if type(value) in _NUMBER_TYPES:
        return ("number", _NUMBER_TYPES[type(value)])
    if isinstance(value, torch.Tensor) and not all(type(n) is int for n in (*value.shape, *value.stride(), value.storage_offset())):
        raise _Unknown("the shape of the result depends on a number of the graph")
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
    if type(value) in _PLAIN_TYPES:
        return ("const", value)
    if not isinstance(value, (tuple, list)):
        raise _Unknown(f"the result is a {type(value).__name__}, and a run with fake tensors gives another one")
    items = tuple(_describe(item, operands) for item in value)
    if type(value) is tuple:
        return ("tuple", *items)
    if type(value) is list:
        return ("list", *items)
    return ("namedtuple", type(value), *items)


def _mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """An operand with its leaves replaced."""
    if isinstance(value, slice):
        return slice(_mapped(value.start, leaf), _mapped(value.stop, leaf), _mapped(value.step, leaf))
    if isinstance(value, dict):
        return {key: _mapped(item, leaf) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, leaf) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, leaf) for item in value))
    return leaf(value)


def _has_number(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_has_number(item) for item in value)
    if isinstance(value, dict):
        return any(_has_number(item) for item in value.values())
    if isinstance(value, slice):
        return _has_number((value.start, value.stop, value.step))
    return isinstance(value, Number)


def _writes(target: Any, kwargs: dict[str, Any]) -> bool:
    name = target if isinstance(target, str) else getattr(target, "__name__", "")
    if kwargs.get("inplace") is True or "out" in kwargs:
        return True
    return (
        (name.endswith("_") and not name.endswith("__"))
        or name in ("setitem", "__setitem__")
        or (getattr(target, "__module__", "") == "_operator" and name.startswith("i") and name not in ("invert", "index", "is_", "is_not", "inv"))
    )


def _is_on_meta(made: dict[int, Any]) -> bool:
    return any(tensor.device.type == "meta" for tensor in made.values())


def infer(target: Any, is_method: bool, args: tuple[Any, ...], kwargs: dict[str, Any], grad_enabled: bool):
    """Runs the op on fake tensors. Returns a description: a tuple whose first item is a tag.

    ("tensor", dtype, device, layout, requires_grad, is_leaf, is_inference, conj, neg, sizes, strides, offset),
    ("same", Described) for a result that is an unchanged operand, ("tuple" | "list", *items), ("namedtuple", class, *items), ("dict", keys, *items),
    ("none",), ("const", object), ("number", type), ("unknown", reason) and ("raise", exception).
    """
    with_numbers = any(_has_number(value) for value in (*args, *kwargs.values()))
    mode = _mode_for_numbers() if with_numbers else _fake_mode()
    writable = _writes(target, kwargs)
    given = (args, kwargs)
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
        if isinstance(value, Number):
            known = made.get(id(value))
            if known is None:
                known = made[id(value)] = _make_number(mode, value)
            return known
        return value

    was_disabled = _log.disabled
    _log.disabled = True
    try:
        args = _mapped(args, fake)
        kwargs = _mapped(kwargs, fake)
        with _quiet(), torch.set_grad_enabled(grad_enabled), mode:
            result = getattr(args[0], target)(*args[1:], **kwargs) if is_method else target(*args, **kwargs)
        if not with_numbers and ((writable and _narrows(given)) or type(kwargs.get("alpha")) is bool):
            # Fake tensors' mul_ takes what torch's would not cast, and their add any alpha.
            real = _eager_error(target, is_method, given, grad_enabled, writable)
            if real is not None:
                return ("raise", real.with_traceback(None))
        return _describe(result, operands)
    except _unknown_errors as error:
        return ("unknown", f"{type(error).__name__}: {error}")
    except (ImportError, MemoryError) as error:
        return ("unknown", f"{type(error).__name__}: {error}")
    except Exception as error:
        # An error that speaks of the meta device is about the fake tensors, not about the program's.
        of_fakes = isinstance(error, RuntimeError) and "meta" in str(error) and not _is_on_meta(made)
        # What a symbolic number cannot do, a real one may.
        if of_fakes or with_numbers or type(error).__module__.startswith("torch._"):
            return ("unknown", f"{type(error).__name__}: {error}")
        # Fake tensors have words of their own.
        real = _eager_error(target, is_method, given, grad_enabled, writable)
        if real is not None:
            real.__context__ = None  # the error of the fake tensors
            return ("raise", real.with_traceback(None))
        return ("unknown", f"{type(error).__name__}: {error}")
    finally:
        _log.disabled = was_disabled


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What an op warns about is said where it runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _narrows(given: Any) -> bool:
    """Whether a tensor of integers is written to by an operation on numbers that are none."""
    args, kwargs = given
    if not (args and isinstance(args[0], Described)) or args[0].meta.dtype.is_floating_point or args[0].meta.dtype.is_complex:
        return False
    others = (*args[1:], *kwargs.values())
    return any(type(v) in (float, complex) or (isinstance(v, Described) and v.meta.dtype.is_floating_point) for v in others)


_MOST_BYTES = 1 << 28


def _eager_error(target: Any, is_method: bool, given: Any, grad_enabled: bool, writable: bool) -> Exception | None:
    """What the op raises on real tensors of these sizes; None where it does not, or where that cannot be tried."""
    if getattr(target, "namespace", "aten") not in ("aten", "prims", "prim"):
        return None
    if not is_method and not (getattr(target, "__module__", None) or "torch").startswith(("torch", "_operator", "math")):
        return None  # a function of the program
    made: dict[int, torch.Tensor] = {}

    def real(value):
        if isinstance(value, Described):
            if id(value) not in made:
                made[id(value)] = _make_real(value, writable)
            return made[id(value)]
        return value

    before = torch.get_rng_state()
    try:
        args, kwargs = _mapped(given[0], real), _mapped(given[1], real)
    except Exception:
        return None
    try:
        with _quiet(), torch.set_grad_enabled(grad_enabled):
            getattr(args[0], target)(*args[1:], **kwargs) if is_method else target(*args, **kwargs)
    except Exception as error:
        return error
    finally:
        torch.set_rng_state(before)
    return None


def _make_real(described: Described, writable: bool) -> torch.Tensor:
    meta = described.meta
    if meta.untyped_storage().nbytes() > _MOST_BYTES:
        raise MemoryError
    with torch.inference_mode(described.is_inference):
        made = torch.empty_strided(meta.shape, meta.stride(), dtype=meta.dtype, device=described.device).zero_()
        if described.is_conj:
            made = made.conj()
        if described.is_neg:
            made = torch._neg_view(made)
    if described.requires_grad:
        made.requires_grad_()
        if not described.is_leaf and writable:
            with torch.enable_grad():
                made = made.clone()
    return made
