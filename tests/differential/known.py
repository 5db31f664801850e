"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

KNOWN: dict[str, str] = {
    "control.exit_stack": "ExitStack asks sys.exc_info(), which also knows the caller's exceptions and has no guard yet: the frame runs eagerly",
    "tensor_programs.manual_seed_inside": "torch.manual_seed is not captured yet: the frame runs eagerly",
    "tensor_programs.python_random": "random.random is not captured yet: the frame runs eagerly",
}
