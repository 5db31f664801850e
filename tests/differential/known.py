"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

KNOWN: dict[str, str] = {
    "modules.full_backward_hook": "autograd.Function is not captured yet: the frame runs eagerly",
    "tensor_programs.requires_grad_inplace": "requires_grad_() is not captured yet: the frame runs eagerly",
    "tensor_programs.custom_autograd_function": "autograd.Function is not captured yet: the frame runs eagerly",
    "tensor_programs.checkpointed": "torch.utils.checkpoint is not captured yet: the frame runs eagerly",
}
