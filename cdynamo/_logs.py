"""What TORCH_LOGS, torch._logging.set_logs and CDYNAMO_LOGS show: torch's artifacts in torch's form, on torch's loggers."""

from __future__ import annotations

import dis
import logging
import os
from typing import Any

import torch._logging

from . import _compile_ids
from ._own_builtins import __builtins__  # noqa: F401
from ._text import break_place, calling_stack, describe_break, plain_locals, recompile_text, user_stack_text

# The module of torch._dynamo on whose logger torch says it: handlers and tests look there.
_ARTIFACTS = {
    "graph_breaks": "symbolic_convert",
    "recompiles": "guards",
    "guards": "guards",
    "graph": "output_graph",
    "graph_code": "output_graph",
    "graph_sizes": "output_graph",
    "bytecode": "convert_frame",
}
_RECOMPILE_PAGE = "https://docs.pytorch.org/docs/main/user_guide/torch_compiler/compile/programming_model.recompilation.html"

_loggers: dict[str, logging.Logger] = {}  # of artifacts, and of modules of torch._dynamo
_breaks_said: set[tuple[str, int, str]] = set()


def logger(name: str) -> logging.Logger | None:
    """The logger of an artifact, or None while nobody asked for it."""
    found = _loggers.get(name)
    if found is None:
        found = _loggers[name] = _make_logger(name)
    return found if found.isEnabledFor(logging.DEBUG) else None


def _make_logger(name: str) -> logging.Logger:
    made: logging.Logger = torch._logging.getArtifactLogger(  # type: ignore[attr-defined]
        f"torch._dynamo.{_ARTIFACTS[name]}", name
    )
    wanted = [part.strip().lstrip("+") for part in os.environ.get("CDYNAMO_LOGS", "").split(",")]
    if name in wanted or "all" in wanted:
        made.setLevel(logging.DEBUG)
        if not made.handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(_Formatter(name))
            made.addHandler(handler)
            made.propagate = False
    return made


class _Formatter(logging.Formatter):
    """For CDYNAMO_LOGS: each line says what it is of."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def format(self, record: logging.LogRecord) -> str:
        compile_id = torch._guards.CompileContext.current_compile_id()
        prefix = "[cdynamo] " + (f"[{compile_id}] " if compile_id is not None else "") + f"[{self._name}] "
        return "\n".join(prefix + line for line in record.getMessage().split("\n"))


def _dynamo(module: str) -> logging.Logger:
    found = _loggers.get(module)
    if found is None:
        found = _loggers[module] = logging.getLogger(f"torch._dynamo.{module}")
    return found


def reset() -> None:
    _breaks_said.clear()


def on_start(payload: dict[str, Any]) -> None:
    code = payload["code"]
    steps = _dynamo("symbolic_convert")
    original = logger("bytecode")
    if not original and not steps.isEnabledFor(logging.INFO):
        return
    with _compile_ids.said_under(_compile_ids.latest()):
        steps.info("Step 1: torchdynamo start tracing %s %s:%s", code.co_name, code.co_filename, payload.get("resumed_at") or code.co_firstlineno)
        if original:
            original.debug("%s", _bytecode("ORIGINAL BYTECODE", code, code))


def on_capture(payload: dict[str, Any]) -> None:
    wanted = {name: log for name in ("graph", "graph_code", "graph_sizes", "bytecode", "guards") if (log := logger(name))}
    steps = _dynamo("symbolic_convert")
    if not wanted and not steps.isEnabledFor(logging.INFO):
        return
    code, graph = payload.get("code"), payload.get("graph")
    with _compile_ids.said_under(_compile_ids.latest()):
        steps.info("Step 1: torchdynamo done tracing %s (%s)", getattr(code, "co_name", "<unknown>"), payload.get("reason"))
        if graph is not None and not wanted.keys().isdisjoint(("graph", "graph_code", "graph_sizes")):
            _say_graph(graph, wanted)
        if "bytecode" in wanted and payload.get("emitted") is not None:
            wanted["bytecode"].debug("%s", _bytecode("MODIFIED BYTECODE", code, payload["emitted"]))
        if "guards" in wanted:
            lines = payload.get("guard_tree") or guard_texts(payload)
            wanted["guards"].debug("GUARDS:")
            wanted["guards"].debug("\n%s\n", "\n".join(lines))


def _say_graph(graph: Any, wanted: dict[str, logging.Logger]) -> None:
    from ._fx import to_graph_module

    module = to_graph_module(graph)
    module.fill_meta()
    name = f"__compiled_fn_{_compile_ids.latest()}".replace("/", "_")
    if "graph_code" in wanted:
        text = module.print_readable(print_output=False, include_stride=True, include_device=True)
        wanted["graph_code"].debug("TRACED GRAPH\n ===== %s =====\n %s\n", name, text)
    if "graph" in wanted:
        rows = [f"{node.op:<15} {node.name:<20} {node.target!s:<40} {node.args!s:<30} {node.kwargs}" for node in module.graph.nodes]
        header = f"{'opcode':<15} {'name':<20} {'target':<40} {'args':<30} kwargs"
        wanted["graph"].debug("TRACED GRAPH\n ===== %s =====\n %s\n", name, "\n".join([header, *rows]))
    if "graph_sizes" in wanted:
        values = ((node.name, node.meta.get("example_value")) for node in module.graph.nodes)
        sizes = "".join(f"{at}: {tuple(value.shape)}\n" for at, value in values if isinstance(value, torch.Tensor))
        wanted["graph_sizes"].debug("TRACED GRAPH TENSOR SIZES\n===== %s =====\n%s", name, sizes)


def _bytecode(title: str, code: Any, shown: Any) -> str:
    return f"{title} {code.co_name} {code.co_filename} line {code.co_firstlineno} \n{dis.Bytecode(shown).dis()}\n"


def guard_texts(payload: dict[str, Any]) -> list[str]:
    guards = payload.get("guards") or []
    return list(guards()) if callable(guards) else list(guards)


def on_break(payload: dict[str, Any]) -> None:
    """Under fullgraph the exception says it."""
    log = logger("graph_breaks")
    if log is None or payload.get("raises"):
        return
    file, line = break_place(payload)
    reason = describe_break(payload)
    key = (file, line, reason)
    with _compile_ids.said_under(_compile_ids.latest()):
        if key in _breaks_said:
            said = "Graph break (user stack suppressed due to duplicate graph break) in user code at"
            log.debug("%s %s:%s\nGraph Break Reason: %s", said, file, line, reason)
            return
        _breaks_said.add(key)
        stack = user_stack_text([*calling_stack(), *(payload.get("stack") or ())])
        log.debug("Graph break in user code at %s:%s\nGraph Break Reason: %s\n\nUser code traceback:\n%s\n", file, line, reason, stack)


def on_skip(payload: dict[str, Any]) -> None:
    log = _dynamo("convert_frame")
    if not log.isEnabledFor(logging.DEBUG):
        return
    code = payload.get("code")
    with _compile_ids.said_under(_compile_ids.latest()):
        name, file = (code.co_name, code.co_filename) if code is not None else ("<unknown>", "<unknown>")
        log.debug("skipping: %s (reason: %s, file: %s)", name, payload.get("title") or payload.get("reason"), file)


def on_recompile(payload: dict[str, Any]) -> None:
    code = payload.get("code")
    log = logger("recompiles")
    if payload.get("limit_hit"):
        failed = [plain_locals(str(text)) for text in payload.get("failed") or ()]
        with _compile_ids.said_under(_compile_ids.upcoming(code)):
            _dynamo("convert_frame").warning(
                'torch._dynamo hit config.recompile_limit (%s)\n   function: %s\n   last reason: %s\nTo log all recompilation reasons, '
                'use TORCH_LOGS="recompiles".\nTo diagnose recompilation issues, see %s',
                payload.get("limit"), _quoted(code), failed[0] if failed else "unknown", _RECOMPILE_PAGE,
            )  # fmt: skip
    elif log:
        with _compile_ids.said_under(_compile_ids.upcoming(code)):
            log.debug("%s", recompile_text(payload))


def _quoted(code: Any) -> str:
    return f"'{code.co_name}' ({code.co_filename}:{code.co_firstlineno})" if code is not None else "<unknown>"
