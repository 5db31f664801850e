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
from ._decorators import (  # noqa: E402
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    error_on_graph_break,
    forbid_in_graph,
    graph_break,
    is_compiling,
    mark_dynamic,
    mark_static,
    nonstrict_trace,
    run,
    skip_frame,
    step_unsupported,
    substitute_in_graph,
)
from ._events import counters  # noqa: E402
from ._explain import explain  # noqa: E402
from ._front import reset  # noqa: E402
from ._install import install, uninstall  # noqa: E402
from ._report import InternalError  # noqa: E402
from ._stance import set_stance  # noqa: E402

_front.connect()

__version__ = "0.1.0"
__all__ = [
    "CompiledModule",
    "InternalError",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "counters",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "install",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "nonstrict_trace",
    "reset",
    "run",
    "set_stance",
    "skip_frame",
    "step_unsupported",
    "substitute_in_graph",
    "uninstall",
]
