"""cdynamo: TorchDynamo's job in C++. Captures Python functions as graphs and hands them to any torch.compile backend."""

from __future__ import annotations

from . import _requirements

_requirements.check_python()

import torch  # noqa: E402  (its libraries must be loaded before the extension)

try:
    from . import _C
except ImportError as _error:
    _requirements.check_extension()
    raise ImportError(f"cdynamo's extension does not load with torch {torch.__version__} ({_error}); build it again.") from None
_requirements.check_torch(_C.built_for, torch.__version__)

from . import _front  # noqa: E402
from ._compile import CompiledModule, compile  # noqa: E402
from ._config import config  # noqa: E402
from ._decorators import disable, is_compiling  # noqa: E402
from ._events import counters  # noqa: E402
from ._explain import explain  # noqa: E402
from ._front import reset  # noqa: E402
from ._install import install, uninstall  # noqa: E402
from ._report import InternalError  # noqa: E402

_front.connect()

__version__ = "0.1.0"
__all__ = [
    "CompiledModule",
    "InternalError",
    "compile",
    "config",
    "counters",
    "disable",
    "explain",
    "install",
    "is_compiling",
    "reset",
    "uninstall",
]
