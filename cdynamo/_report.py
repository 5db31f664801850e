"""What happens when the engine itself fails: a report that is enough to repeat it, one warning, and an eager run."""

from __future__ import annotations

import inspect
import itertools
import os
import platform
import sys
import tempfile
import traceback
import warnings
from typing import Any

from ._config import config
from ._own_builtins import __builtins__  # noqa: F401
from ._text import describe_code, user_stack_text

_numbers = itertools.count(1)
_warned: set[Any] = set()


class InternalError(RuntimeError):
    """cdynamo's own mistake, not the user's. Raised under `config.strict`."""


def after_failure(payload: dict[str, Any]) -> None:
    """Writes the report; raises InternalError when strict, else warns once per code object."""
    code = payload.get("code")
    path = write_report(payload)
    error = payload.get("error")
    what = f"{type(error).__name__}: {error}" if error is not None else "unknown error"
    message = f"cdynamo failed on {describe_code(code)} ({what}); report: {path}"
    if config.strict:
        raise InternalError(message) from error
    if code not in _warned:
        _warned.add(code)
        warnings.warn(f"{message}. The function runs eagerly.", stacklevel=3)


def reset_warnings() -> None:
    _warned.clear()


def write_report(payload: dict[str, Any]) -> str:
    """Returns the file's path. A directory that cannot be written gives way to the system's for temporary files."""
    text = report_text(payload)
    for directory in (config.report_directory, os.path.join(tempfile.gettempdir(), "cdynamo-reports")):
        try:
            os.makedirs(directory, exist_ok=True)
            path = os.path.join(directory, f"report-{os.getpid()}-{next(_numbers)}.txt")
            with open(path, "w") as file:
                file.write(text)
            return os.path.abspath(path)
        except OSError:
            continue
    return "<could not be written>"


def report_text(payload: dict[str, Any]) -> str:
    import torch

    code, error = payload.get("code"), payload.get("error")
    built_for = getattr(sys.modules.get("cdynamo._C"), "built_for", "unknown")
    try:
        source = inspect.getsource(code) if code is not None else "<unknown>"
    except (OSError, TypeError):
        source = "<source not available>"
    trace = "".join(traceback.format_exception(error)) if error is not None else "<none>"
    parts = {
        "failed": describe_code(code),
        "stage": str(payload.get("stage", "unknown")),
        "versions": f"Python {platform.python_version()}, torch {torch.__version__}, built for {built_for}, {platform.platform()}",
        "user stack": user_stack_text(payload.get("stack")),
        "arguments": "\n".join(str(line) for line in payload.get("arguments") or ()),
        "error": trace,
        "source": source,
    }
    return "cdynamo: crash report\n" + "".join(f"\n== {title}\n{body.rstrip()}\n" for title, body in parts.items())
