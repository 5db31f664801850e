"""Graphs made by hand, for tests of what comes after the capture."""

from __future__ import annotations

from typing import Any

import torch

from cdynamo import _C

N = _C.NodeIndex
STACK = (("model.py", 3, "forward", None, None),)
_DTYPE_NUMBERS = {torch.float32: 6, torch.float64: 7, torch.int64: 4, torch.bool: 11}


def meta(tensor: Any) -> Any:
    """The description of a tensor (or of a tuple of them) as the engine gives it."""
    if isinstance(tensor, torch.Tensor):
        number = _DTYPE_NUMBERS[tensor.dtype]
        return ("tensor", number, (0, -1), tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.requires_grad, tensor.is_leaf, 0)
    if isinstance(tensor, (tuple, list)):
        if type(tensor) is not tuple and isinstance(tensor, tuple):
            return ("named", type(tensor), tuple(meta(item) for item in tensor))
        return (type(tensor).__name__, tuple(meta(item) for item in tensor))
    return ("constant", tensor)


class Maker:
    """Builds a program while computing it, so that every node has its true metadata."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.values: list[Any] = []

    def _add(self, op: str, target: Any, args: Any, kwargs: Any, value: Any, name: str = "", source: Any = None, stack: Any = STACK) -> Any:
        self.nodes.append((op, target, args, kwargs, name, meta(value), stack, source))
        self.values.append(value)
        return N(len(self.nodes) - 1)

    def input(self, value: Any, source: str) -> Any:
        return self._add("placeholder", "", (), {}, value, source=source)

    def call(self, target: Any, *args: Any, name: str = "", stack: Any = STACK, **kwargs: Any) -> Any:
        value = target(*self._real(args), **self._real(kwargs))
        return self._add("call_function", target, args, kwargs, value, name, stack=stack)

    def method(self, target: str, *args: Any, name: str = "", **kwargs: Any) -> Any:
        real = self._real(args)
        value = getattr(real[0], target)(*real[1:], **self._real(kwargs))
        return self._add("call_method", target, args, kwargs, value, name)

    def _real(self, tree: Any) -> Any:
        if isinstance(tree, N):
            return self.values[tree]
        if type(tree) in (tuple, list):
            return type(tree)(self._real(item) for item in tree)
        if isinstance(tree, dict):
            return {key: self._real(item) for key, item in tree.items()}
        if isinstance(tree, slice):
            return slice(self._real(tree.start), self._real(tree.stop), self._real(tree.step))
        return tree

    def program(self, *outputs: Any) -> _C.GraphProgram:
        return _C.GraphProgram(self.nodes, outputs)


def two_layers(x: torch.Tensor, first: torch.nn.Linear, second: torch.nn.Linear) -> tuple[_C.GraphProgram, list[Any]]:
    """relu(first(x)) through second, summed over the rows; parameters are inputs."""
    made = Maker()
    linear = torch._C._nn.linear
    inputs = [first.weight, first.bias, x, second.weight, second.bias]
    names = [
        "L['self']._modules['first']._parameters['weight']",
        "L['self']._modules['first']._parameters['bias']",
        "L['x']",
        "L['self']._modules['second']._parameters['weight']",
        "L['self']._modules['second']._parameters['bias']",
    ]
    w1, b1, at, w2, b2 = (made.input(value, name) for value, name in zip(inputs, names))
    inner = (("model.py", 3, "forward", "L['self']", torch.nn.Module), ("linear.py", 8, "forward", "L['self']._modules['first']", torch.nn.Linear))
    hidden = made.call(linear, at, w1, b1, name="hidden", stack=inner)
    hidden = made.call(torch.nn.functional.relu, hidden, inplace=False, name="hidden")
    out = made.call(linear, hidden, w2, b2, name="out")
    total = made.method("sum", out, dim=1)
    return made.program(total, hidden), inputs
