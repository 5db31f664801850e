"""Calls with graphs as operands, as the captured program runs them, and what they are in torch.fx."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from ._C import GraphProgram


def autograd_function_apply(fwd: GraphProgram, bwd: GraphProgram, *args: Any, **indices: Any) -> Any:
    """A traced torch.autograd.Function: torch's operator of this name, with programs for its two graphs."""
    applied = fwd.__dict__.get("applied")
    if applied is None:
        applied = fwd.__dict__["applied"] = _function_of(fwd, bwd, **indices)
    return applied.apply(*args)


def _function_of(
    fwd: Any, bwd: Any, non_differentiable_idx: list[int], saved_for_backward_idx: list[int], dirty_idx: list[int] | tuple[int, ...] = ()
) -> type[torch.autograd.Function]:
    outs, saved = map(len, fwd.output_tree)
    checked = len(saved_for_backward_idx)
    grads = bwd.output_tree

    def forward(ctx: Any, *args: Any) -> Any:
        flat = fwd(*args)
        results = flat[:outs]
        if dirty_idx:
            ctx.mark_dirty(*(results[i] for i in dirty_idx))
        if non_differentiable_idx:
            ctx.mark_non_differentiable(*(results[i] for i in non_differentiable_idx))
        # What the user's forward put on ctx by other means than save_for_backward is not watched for changes.
        ctx.save_for_backward(*flat[outs : outs + checked])
        ctx.kept = flat[outs + checked : outs + saved]
        return results

    def backward(ctx: Any, *given: Any) -> Any:
        flat = bwd(*given, *ctx.saved_tensors, *ctx.kept)
        return tuple(None if i is None else flat[i] for i in grads)

    outer: Any = torch.autograd.function.once_differentiable(backward) if bwd.once_differentiable else backward
    body = {"forward": staticmethod(forward), "backward": staticmethod(outer)}
    return type(fwd.function_name, (torch.autograd.Function,), body)


def tag_activation_checkpoint(body: GraphProgram, *args: Any, **options: Any) -> Any:
    """A checkpointed call. The program is as good as the user's function for running it again."""
    return checkpoint(body, *args, **options)


def register_hook(tensor: torch.Tensor, body: GraphProgram, *args: Any) -> torch.Tensor:
    tensor.register_hook(lambda grad: body(grad, *args)[0])  # type: ignore[no-untyped-call]
    return tensor


def register_on(handle: RemovableHandle, tensor: torch.Tensor, method: str, hook: Any) -> None:
    """Registers a hook now whose handle the program has already."""
    handle.__dict__.update(getattr(tensor, method)(hook).__dict__)


class _ModeStack:
    """The torch-function modes around a call, for guards: mode_0 is the outermost."""

    def __getattr__(self, name: str) -> Any:
        at = int(name.removeprefix("mode_"))
        if at >= torch._C._len_torch_function_stack():
            raise AttributeError(name)
        return torch._C._get_function_stack_at(at)


mode_stack = _ModeStack()


class _Reporter(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func


def reported_function(method: Any) -> Any:
    """What a __torch_function__ is told that was called when a method of torch.Tensor is."""
    tensor = torch.Tensor._make_subclass(_Reporter, torch.empty(()))
    for arguments in ((), (tensor,)):
        try:
            reported = method(tensor, *arguments)
        except TypeError:
            continue
        if callable(reported):
            return reported
    return method


def fx_target(target: Any) -> Any:
    """The callable that backends know for one of ours; any other target as it is."""
    if target is autograd_function_apply:
        from torch._functorch.autograd_function import autograd_function_apply as apply

        return apply
    if target is tag_activation_checkpoint:
        return torch.ops.higher_order.tag_activation_checkpoint
    if target is register_hook:
        from torch._higher_order_ops.register_hook import register_hook_op

        return register_hook_op
    return target
