"""`node.meta` of exported graphs: what torch._dynamo's graphs carry, made when somebody looks."""

from __future__ import annotations

import inspect
import linecache
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import Node, map_arg

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

    from ._C import NodeDescription, ResultDescription, StackDescription

# c10::ScalarType and c10::DeviceType by number.
_DTYPES: dict[int, torch.dtype] = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
    7: torch.float64, 8: torch.complex32, 9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16,
}  # fmt: skip
_DEVICE_TYPES = {0: "cpu", 1: "cuda", 9: "xla", 12: "xpu", 13: "mps", 14: "meta", 15: "hpu", 20: "privateuseone"}

_TORCH_DIRECTORY = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_MODULE_ITEM = re.compile(r"\._modules\['([^']*)'\]")
_STATIC_INPUT = re.compile(r"\._(parameters|buffers)\['")


class NodeMeta(dict):  # type: ignore[type-arg]
    """A dict that is filled before the first look at it. What was stored before then wins over what the filling brings."""

    __slots__ = ("_fill",)

    def __init__(self, fill: Callable[[], None]) -> None:
        super().__init__()
        self._fill: Callable[[], None] | None = fill

    def _now(self) -> None:
        fill = self._fill
        if fill is not None:
            self._fill = None
            fill()

    def settle(self, items: dict[str, Any]) -> None:
        """Brings the contents; keys that are already there stay."""
        self._fill = None
        for key, value in items.items():
            dict.setdefault(self, key, value)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._now()
        return (dict, (dict(dict.items(self)),))

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        import copy

        return copy.deepcopy(self.copy(), memo)

    def copy(self) -> dict[str, Any]:
        self._now()
        return dict(dict.items(self))

    def __iter__(self) -> Iterator[str]:
        self._now()
        return dict.__iter__(self)


def _settled(name: str) -> Callable[..., Any]:
    plain = getattr(dict, name)

    def method(self: NodeMeta, *args: Any, **kwargs: Any) -> Any:
        self._now()
        return plain(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in (
    "__getitem__", "__delitem__", "__contains__", "__len__", "__eq__", "__ne__", "__repr__", "__or__", "__ror__", "__ior__",
    "__reversed__", "get", "keys", "values", "items", "pop", "popitem", "setdefault", "clear",
):  # fmt: skip
    setattr(NodeMeta, _name, _settled(_name))


def module_stack(stack: StackDescription) -> OrderedDict[str, tuple[str, type]]:
    """torch's nn_module_stack: the modules whose forward is running, without the one that the root frame belongs to."""
    modules: OrderedDict[str, tuple[str, type]] = OrderedDict()
    for _file, _line, _function, path, kind in stack[1:]:
        if path is not None and kind is not None:
            shown = _MODULE_ITEM.sub(r".\1", path)
            modules[shown] = (shown, kind)
    return modules


def stack_trace(stack: StackDescription) -> str:
    """The user's stack in the form that torch prints, without frames of torch's own modules."""
    lines = []
    for file, line, function, _path, _kind in stack:
        if file.startswith(_TORCH_DIRECTORY):
            continue
        lines.append(f'  File "{file}", line {line}, in {function}\n')
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"    {text}\n")
    return "".join(lines)


class ExampleMaker:
    """Fake tensors from descriptions, all of one mode."""

    def __init__(self, mode: FakeTensorMode) -> None:
        from torch._subclasses.fake_tensor import FakeTensor

        self._mode = mode
        self._fake = FakeTensor
        self._takes_requires_grad = "requires_grad" in inspect.signature(FakeTensor.__new__).parameters

    def make(self, result: ResultDescription, as_parameter: bool = False) -> Any:
        if result is None:
            return None
        kind = result[0]
        if kind == "tensor":
            return self._tensor(result, as_parameter)
        if kind == "tuple":
            return tuple(self.make(item) for item in result[1])
        if kind == "list":
            return [self.make(item) for item in result[1]]
        if kind == "dict":
            return dict(zip(result[1], [self.make(item) for item in result[2]], strict=True))
        if kind == "named":
            items = [self.make(item) for item in result[2]]
            return result[1](*items) if hasattr(result[1], "_fields") else result[1](items)
        return result[1]

    def _tensor(self, result: Any, as_parameter: bool) -> torch.Tensor:
        _kind, dtype_number, (device_type, index), sizes, strides, offset, requires_grad, _is_leaf, layout = result
        dtype = _DTYPES[dtype_number]
        device = torch.device(_DEVICE_TYPES[device_type], index) if index >= 0 else torch.device(_DEVICE_TYPES[device_type])
        if layout != 0:
            element = torch.empty(sizes, dtype=dtype, device="meta")
        elif offset:
            room = offset + 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides) if size)
            element = torch.empty(room, dtype=dtype, device="meta").as_strided(sizes, strides, offset)
        else:
            element = torch.empty_strided(sizes, strides, dtype=dtype, device="meta")
        if as_parameter:
            return torch.nn.Parameter(self._fake(self._mode, element, device), requires_grad=requires_grad)
        if self._takes_requires_grad:
            return self._fake(self._mode, element, device, requires_grad=requires_grad)
        fake = self._fake(self._mode, element, device)
        return fake.requires_grad_() if requires_grad else fake


def number_items(node: Node, mode: FakeTensorMode) -> dict[str, Any]:
    """The example of a node that gives a number: a symbol without a hint, or what its operands' symbols make."""
    from torch.fx.experimental.symbolic_shapes import compute_unbacked_bindings

    args, kwargs = map_arg((node.args, node.kwargs), lambda used: used.meta["example_value"])
    target: Any = node.target
    with mode:
        value = getattr(args[0], target)(*args[1:], **kwargs) if node.op == "call_method" else target(*args, **kwargs)
    bindings = compute_unbacked_bindings(mode.shape_env, value)
    return {"example_value": value} if not bindings else {"example_value": value, "unbacked_bindings": bindings}


class StackTexts:
    """module_stack and stack_trace, each worked out once for nodes that share a stack."""

    def __init__(self) -> None:
        self._known: dict[StackDescription, tuple[OrderedDict[str, tuple[str, type]], str]] = {}

    def of(self, stack: StackDescription) -> tuple[OrderedDict[str, tuple[str, type]], str]:
        found = self._known.get(stack)
        if found is None:
            found = self._known[stack] = (module_stack(stack), stack_trace(stack))
        return found


def node_items(node: NodeDescription, name: str, is_parameter: bool, fixed: str | None, maker: ExampleMaker, texts: StackTexts) -> dict[str, Any]:
    """All of one node's meta."""
    op, target, _args, _kwargs, _hint, result, stack, source = node
    items: dict[str, Any] = {}
    modules, trace = texts.of(stack)
    if modules:
        items["nn_module_stack"] = modules.copy()
    if op in ("call_function", "call_method"):
        items["source_fn_stack"] = [(name, target)]
    if stack:
        items["stack_trace"] = trace
    if result is not None and result[0] != "number":
        items["example_value"] = maker.make(result, is_parameter)
    if op == "placeholder":
        if fixed is None and source is not None and _STATIC_INPUT.search(source) is not None:
            fixed = "unguarded"
        items["tensor_dict"] = {} if fixed is None else {"_dynamo_static_input_type": fixed}
    return items
