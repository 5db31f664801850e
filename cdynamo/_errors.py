"""Torch's exceptions for what the user asked not to happen. torch._dynamo is imported only when one is needed."""

from __future__ import annotations

from typing import Any

from ._own_builtins import __builtins__  # noqa: F401
from ._text import break_title, describe_break, recompile_text, stack_summary, user_stack_text


def unsupported(payload: dict[str, Any]) -> BaseException:
    """torch._dynamo.exc.Unsupported for a break under fullgraph=True; `payload` is that of the break event."""
    from torch._dynamo.exc import Unsupported

    message = describe_break(payload)
    stack = user_stack_text(payload.get("stack"))
    if stack:
        message += f"\n\nfrom user code:\n {stack}\n"
    return Unsupported(message, gb_type=break_title(payload), real_stack=stack_summary(payload.get("stack")))


def recompile_limit_hit(payload: dict[str, Any]) -> BaseException:
    """torch._dynamo.exc.FailOnRecompileLimitHit, for fullgraph=True and for config.fail_on_recompile_limit_hit."""
    from torch._dynamo.exc import FailOnRecompileLimitHit

    failed = "\n".join(f"  {text}" for text in payload.get("failed") or ())
    why = "fail_on_recompile_limit_hit is set" if payload.get("by_config") else "Hard failure due to fullgraph=True"
    return FailOnRecompileLimitHit(f"recompile_limit reached. {why}. Guard failures:\n{failed}")


def recompile_error(payload: dict[str, Any]) -> BaseException:
    """torch._dynamo.exc.RecompileError, for config.error_on_recompile."""
    from torch._dynamo.exc import RecompileError

    return RecompileError(recompile_text(payload))
