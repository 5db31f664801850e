"""NumPy in graphs: arrays are tensors there, operations are torch._numpy's, and what they give is asked of NumPy itself.

A NumPy call is captured only where torch._numpy's answer has NumPy's shape, dtype and sharing of memory. Values are torch's: equal
but for the rounding of sums and of functions such as exp.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import _fake

# Larger arrays are not made only to ask NumPy.
_LARGEST = 1 << 22

# fmt: off
_UFUNCS = [
    "add", "subtract", "multiply", "divide", "true_divide", "negative", "positive", "absolute", "abs", "fabs", "sign", "sqrt", "square",
    "reciprocal", "exp", "expm1", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "arctan2",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "hypot", "maximum", "minimum", "fmax", "fmin", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "invert", "isnan", "isinf", "isfinite", "floor", "ceil", "trunc", "rint", "conj", "conjugate", "deg2rad", "rad2deg",
    "copysign", "heaviside", "matmul", "power"
]
_FUNCTIONS = [
    "where", "clip", "real", "imag", "sum", "mean", "prod", "max", "amax", "min", "amin", "argmax", "argmin", "all", "any", "std", "var",
    "cumsum", "cumprod", "reshape", "transpose", "ravel", "squeeze", "expand_dims", "concatenate", "stack", "vstack", "hstack", "dstack",
    "column_stack", "broadcast_to", "flip", "fliplr", "flipud", "roll", "tile", "repeat", "swapaxes", "moveaxis", "split", "array_split",
    "hsplit", "vsplit", "meshgrid", "atleast_1d", "atleast_2d", "atleast_3d", "zeros_like", "ones_like", "full_like", "copy", "dot",
    "outer", "trace", "diag", "diagonal", "tril", "triu", "sort", "round", "around", "diff", "tensordot", "einsum", "ptp", "count_nonzero",
    "linalg.norm"
]
_MAKERS = [
    "zeros", "ones", "full", "eye", "identity", "arange", "linspace", "array", "asarray", "ascontiguousarray"
]
_METHODS = [
    "sum", "mean", "prod", "max", "min", "argmax", "argmin", "all", "any", "std", "var", "cumsum", "cumprod", "reshape", "transpose",
    "ravel", "flatten", "squeeze", "swapaxes", "repeat", "clip", "copy", "dot", "trace", "diagonal", "astype", "round", "conj", "conjugate"
]
_ATTRIBUTES = ("T", "real", "imag")
_OPERATORS = [
    "add", "sub", "mul", "truediv", "matmul", "pow", "neg", "pos", "invert", "abs", "and_", "or_", "xor", "lt", "le", "eq", "ne", "gt",
    "ge", "getitem", "setitem"
]
_INPLACE = [
    "iadd", "isub", "imul", "itruediv", "iand", "ior", "ixor"
]
# fmt: on


def _theirs() -> Any:
    import torch._numpy as tnp

    return tnp


class Call:
    """An operation on arrays as a graph calls it: tensors in, tensors out."""

    def __init__(self, name: str, numpys: Callable[..., Any], torchs: Callable[..., Any], makes: bool = False) -> None:
        self.__name__ = self.__qualname__ = "numpy_" + name.replace(".", "_")
        self.__module__ = __name__
        self.numpys = numpys
        self.torchs = torchs
        self.makes = makes  # gives an array of no array
        self.container = tuple if name == "meshgrid" else list  # of several results
        self.writes = name.removeprefix("operator_") in ("setitem", *_INPLACE)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = _to_tensors(self.torchs(*_to_arrays(args), **_to_arrays(kwargs)))
        return self.container(result) if isinstance(result, (tuple, list)) else result

    def __repr__(self) -> str:
        return self.__name__

    def __reduce__(self) -> Any:
        return (_look_up, (self.__name__,))


_by_name: dict[str, Call] = {}


def _look_up(name: str) -> Call:
    table()
    return _by_name[name]


def _to_arrays(value: Any) -> Any:
    tnp = _theirs()

    if isinstance(value, torch.Tensor):
        return tnp.ndarray(value)
    if type(value) in (tuple, list):
        return type(value)(_to_arrays(item) for item in value)
    if type(value) is dict:
        return {key: _to_arrays(item) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(_to_arrays(value.start), _to_arrays(value.stop), _to_arrays(value.step))
    return _their_dtype(value)


def _to_tensors(value: Any) -> Any:
    tnp = _theirs()

    if isinstance(value, tnp.ndarray):
        return value.tensor
    if type(value) in (tuple, list):
        return type(value)(_to_tensors(item) for item in value)
    return value


def _their_dtype(value: Any) -> Any:
    """NumPy's dtypes and scalar classes as torch._numpy's; all else as it is."""
    tnp = _theirs()

    if isinstance(value, np.dtype):
        return tnp.dtype(value.name)
    if isinstance(value, type) and issubclass(value, np.generic):
        return getattr(tnp, value.__name__)
    return value


def _attribute(name: str) -> Callable[[Any], Any]:
    return lambda array: getattr(array, name)


def _method(name: str) -> Callable[..., Any]:
    return lambda array, *args, **kwargs: getattr(array, name)(*args, **kwargs)


def _divide(left: Any, right: Any) -> Any:
    """Integers are divided in double precision, whatever torch's default is."""
    tnp = _theirs()

    if all(_is_integer(operand) for operand in (left, right)):
        return tnp.true_divide(tnp.asarray(left).astype("float64"), right)
    return tnp.true_divide(left, right)


def _is_integer(operand: Any) -> bool:
    tnp = _theirs()

    return isinstance(operand, int) or (isinstance(operand, tnp.ndarray) and not (operand.tensor.is_floating_point() or operand.tensor.is_complex()))


def _setitem(array: Any, key: Any, value: Any) -> None:
    array[key] = value


_tables: tuple[dict[Any, Call], dict[str, Call], dict[str, Call]] | None = None


def table() -> tuple[dict[Any, Call], dict[str, Call], dict[str, Call]]:
    """What is known, by callable (functions, methods of ndarray), by attribute, and by name in module operator."""
    global _tables
    if _tables is not None:
        return _tables
    tnp = _theirs()

    callables: dict[Any, Call] = {}
    attributes: dict[str, Call] = {}
    operators: dict[str, Call] = {}

    def add(into: dict[Any, Call], key: Any, call: Call) -> None:
        into[key] = _by_name[call.__name__] = call

    def reach(root: Any, path: str) -> Any:
        for part in path.split("."):
            root = getattr(root, part, None)
        return root

    for names, makes in ((_UFUNCS, False), (_FUNCTIONS, False), (_MAKERS, True)):
        for name in names:
            ours, theirs = reach(np, name), reach(tnp, name)
            if ours is not None and theirs is not None and ours not in callables:
                add(callables, ours, Call(name, ours, _divide if name == "divide" else theirs, makes))
    for name in _METHODS:
        descriptor = np.ndarray.__dict__.get(name)
        if descriptor is not None and hasattr(tnp.ndarray, name):
            add(callables, descriptor, Call("method_" + name, _method(name), _method(name)))
    for name in _ATTRIBUTES:
        add(attributes, name, Call("attribute_" + name, _attribute(name), _attribute(name)))
    for name in _OPERATORS + _INPLACE:
        function = _setitem if name == "setitem" else getattr(operator, name)
        add(operators, name, Call("operator_" + name, function, _divide if name == "truediv" else function))
    _tables = (callables, attributes, operators)
    return _tables


# Arrays of more numbers are not written into graphs.
_LONGEST = 1024


def fold(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy gives for constants: a scalar, (nested tuples of numbers, name of the dtype) for a small array, None where it must be asked in
    each call (a warning, an error) or gives another thing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*args, **kwargs)
    except Exception:
        return None
    if isinstance(result, np.generic):
        return result
    if type(result) is np.ndarray and result.ndim and result.size <= _LONGEST and result.dtype.name in _DTYPES:
        return _as_tuples(result.tolist()), result.dtype.name
    return None


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if type(value) is list else value


# ---- what a call gives -------------------------------------------------------------------------------------------------


class _Differs(Exception):
    """NumPy and torch._numpy do not give the same."""


# Values with which NumPy and torch._numpy are compared; whole numbers are indices of any axis too.
_VALUES = {"f": (-1.5, 0.0, 2.0, float("nan"), 0.25, float("inf"), 3.0), "c": (-1.5, 2j, 1 + 1j), "i": (-1, 0), "u": (0, 1), "b": (True, False)}


def _stand_in(described: _fake.Described) -> Any:
    """An array with the shape, strides and dtype; a scalar for one."""
    meta = described.meta
    if meta.numel() > _LARGEST:
        raise _Differs("a large array")
    array = torch.empty_strided(meta.shape, meta.stride(), dtype=meta.dtype).numpy()
    array[...] = np.resize(np.array(_VALUES[array.dtype.kind]).astype(array.dtype), array.shape)
    return array[()] if described.is_scalar else array


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in _leaves(item)]
    return [value]


Answer = tuple[Any, tuple[tuple[type, bool], ...]]
_answers: dict[Any, Answer] = {}


def infer(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    """As _fake.infer; and for each array in the result its class (ndarray, or that of a NumPy scalar) and whether it shares memory."""
    key = (call.__name__, torch.get_default_dtype(), _signature((args, kwargs), {}))
    answer = _answers.get(key)
    if answer is None:
        answer = _infer(call, args, kwargs)
        if len(_answers) < 4096 and "same" not in _tags(answer[0]):
            _answers[key] = answer
    return answer


def _signature(value: Any, known: dict[int, int]) -> Any:
    """All that the answer depends on."""
    if isinstance(value, _fake.Described):
        meta, number = value.meta, known.setdefault(id(value), len(known))
        return ("array", number, meta.dtype, tuple(meta.shape), meta.stride(), value.is_scalar)
    if isinstance(value, slice):
        return ("slice", *(_signature(part, known) for part in (value.start, value.stop, value.step)))
    if isinstance(value, (tuple, list)):
        return (type(value), *(_signature(item, known) for item in value))
    if isinstance(value, dict):
        return (dict, *((name, _signature(item, known)) for name, item in value.items()))
    return (type(value), repr(value))


def _tags(tree: Any) -> list[str]:
    return [tree[0], *(tag for item in tree[1:] for tag in _tags(item))] if tree[0] in ("tuple", "list") else [tree[0]]


def _infer(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    try:
        if isinstance(call.numpys, np.ufunc) and len(args) > call.numpys.nin:
            raise _Differs("out= of a ufunc")
        if call.__name__ in ("numpy_dot", "numpy_method_dot") and any(type(arg) in (int, float, complex, bool) for arg in args):
            raise _Differs("a product with a number is another sum in torch")
        operands: dict[int, Any] = {}
        given = _stand_ins((args, kwargs), operands)
        arrays = list(operands.values())
        if call.__name__ in _BY_VALUE and all(array.dtype.kind in "iub" for array in arrays):
            raise _Differs("an operation on integers that fails for some values")
        tensors = {id(array): torch.from_numpy(np.array(array, copy=True)) for array in arrays}
        before = [array.copy() for array in arrays]
        theirs = call(*_replaced(given[0], tensors), **_replaced(given[1], tensors))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = call.numpys(*given[0], **given[1])
        exact = not call.makes or np.array_equal(expected, np.asarray(theirs), equal_nan=expected.dtype.kind in "fc")
        if not exact or not _equal(expected, theirs) or not all(_equal(array, tensors[id(array)]) for array in arrays):
            raise _Differs("the values differ")
        if not call.writes and not all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in zip(arrays, before, strict=True)):
            raise _Differs("an operand is written to")
        shared: list[bool] = []
        tree = _fake.infer(_noting(call, shared), False, args, kwargs, False)
        if tree[0] in ("unknown", "raise"):
            raise _Differs(str(tree[1]))
        wanted, classes = _describe_array(expected)
        if _shape_of(tree) != wanted:
            raise _Differs(f"torch._numpy gives {_shape_of(tree)}, NumPy {wanted}")
        for leaf, theirs in zip(_leaves(expected), shared, strict=True):
            ours = type(leaf) is np.ndarray and any(np.may_share_memory(leaf, array) for array in arrays)
            if type(leaf) is np.ndarray and ours != theirs:
                raise _Differs("memory is shared with NumPy and not with torch._numpy, or the other way round")
        return tree, tuple(zip(classes, shared))
    except Exception as problem:
        return ("unknown", f"{type(problem).__name__}: {problem}"), ()


def _replaced(value: Any, tensors: dict[int, torch.Tensor]) -> Any:
    """The stand-ins as tensors."""
    if id(value) in tensors:
        return tensors[id(value)]
    if isinstance(value, slice):
        return slice(*(_replaced(part, tensors) for part in (value.start, value.stop, value.step)))
    if type(value) in (tuple, list):
        return type(value)(_replaced(item, tensors) for item in value)
    if type(value) is dict:
        return {key: _replaced(item, tensors) for key, item in value.items()}
    return value


def _equal(expected: Any, actual: Any) -> bool:
    """Up to rounding."""
    if isinstance(expected, (tuple, list)):
        return len(expected) == len(actual) and all(_equal(a, b) for a, b in zip(expected, actual))
    if expected is None:
        return actual is None
    made = np.asarray(actual.resolve_conj().resolve_neg())
    tolerance = {2: 1e-2, 4: 1e-5}.get(expected.dtype.itemsize, 1e-9) if expected.dtype.kind == "f" else 1e-5
    return expected.shape == made.shape and np.allclose(expected, made, rtol=tolerance, atol=tolerance, equal_nan=True)


# Integers to a negative power, and one divided by zero.
_BY_VALUE = ("numpy_power", "numpy_operator_pow", "numpy_reciprocal")


def _stand_ins(value: Any, known: dict[int, Any]) -> Any:
    """The operands as NumPy would get them."""
    if isinstance(value, _fake.Described):
        if id(value) not in known:
            known[id(value)] = _stand_in(value)
        return known[id(value)]
    if isinstance(value, slice):
        return slice(*(_stand_ins(part, known) for part in (value.start, value.stop, value.step)))
    if type(value) in (tuple, list):
        return type(value)(_stand_ins(item, known) for item in value)
    if type(value) is dict:
        return {key: _stand_ins(item, known) for key, item in value.items()}
    return value


def _noting(call: Call, shared: list[bool]) -> Callable[..., Any]:
    """The call, which also says which of its results share memory with its operands."""

    def run(*args: Any, **kwargs: Any) -> Any:
        operands = {leaf.untyped_storage()._cdata for leaf in _leaves([*args, *kwargs.values()]) if isinstance(leaf, torch.Tensor)}
        result = call(*args, **kwargs)
        shared[:] = [isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata in operands for leaf in _leaves(result)]
        return result

    return run


_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex64,
    torch.complex128,
)}  # fmt: skip


def _describe_array(value: Any) -> tuple[Any, list[type]]:
    if value is None:
        return None, []
    if isinstance(value, (tuple, list)):
        parts = [_describe_array(item) for item in value]
        return (type(value) if type(value) in (tuple, list) else tuple, [p[0] for p in parts]), [cls for p in parts for cls in p[1]]
    if not (type(value) is np.ndarray or isinstance(value, (np.number, np.bool_))) or value.dtype.name not in _DTYPES:
        raise _Differs(f"NumPy gives a {type(value).__name__}")
    return (_DTYPES[value.dtype.name], value.shape), [type(value)]


def _shape_of(tree: Any) -> Any:
    if tree[0] == "none":
        return None
    if tree[0] == "tensor":
        return (tree[1], tree[9])
    if tree[0] == "same":
        return (tree[1].meta.dtype, tuple(tree[1].meta.shape))
    if tree[0] in ("tuple", "list"):
        return (tuple if tree[0] == "tuple" else list, [_shape_of(item) for item in tree[1:]])
    return tree


# ---- at the border -----------------------------------------------------------------------------------------------------


def to_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The array that shares the tensor's memory."""
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def to_scalar(tensor: torch.Tensor) -> Any:
    return to_array(tensor)[()]


def dtype_of(dtype: torch.dtype) -> np.dtype[Any]:
    return np.dtype(str(dtype).removeprefix("torch."))
