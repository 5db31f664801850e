"""What a graph may change before it fails: saved before it runs, put back where CPython is to make the call again."""

from __future__ import annotations

import random
from typing import Any

import torch


def copy_of(tensor: torch.Tensor) -> Any:
    with torch.no_grad():
        return tensor.detach().clone(), _layout_of(tensor)


def put_back(tensor: torch.Tensor, copy: Any, version: int) -> bool:
    data, layout = copy
    with torch.inference_mode(tensor.is_inference()), torch.no_grad():
        if _layout_of(tensor) != layout:
            tensor.as_strided_(*layout)
        tensor.detach().copy_(data)
    if version >= 0:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (version,))
    return True


def _layout_of(tensor: torch.Tensor) -> Any:
    return (tensor.size(), tensor.stride(), tensor.storage_offset()) if tensor.layout is torch.strided else None


def torch_state() -> Any:
    uses_cuda = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if uses_cuda else None


def set_torch_state(state: Any) -> bool:
    torch.set_rng_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state_all(state[1])
    return True


def python_state() -> Any:
    return random.getstate()


def set_python_state(state: Any) -> bool:
    random.setstate(state)
    return True
