"""Backends: from what the user named to a callable, and the call itself with the context that torch's backends expect."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from . import _compile_ids
from ._config import config
from ._fx import LazyGraphModule, to_graph_module
from ._own_builtins import __builtins__  # noqa: F401
from ._tracing import BackendContext, GraphSource, backend_call

if TYPE_CHECKING:
    from ._C import GraphProgram

log = logging.getLogger("cdynamo")
steps = logging.getLogger("torch._dynamo.output_graph")

CompiledGraph = Callable[..., Any]


@dataclasses.dataclass
class CompileOptions:
    """What one cdynamo.compile() asked for. The engine reads `fullgraph`, `dynamic` and `recompile_limit`, the rest is ours."""

    backend: Backend
    fullgraph: bool = False
    dynamic: bool | None = None
    recompile_limit: int | None = None
    guard_filter_fn: Callable[..., Any] | None = None


class Backend:
    """A resolved backend: callable as (gm, example_inputs). `runs_program`: the graph is run as captured, with no call."""

    def __init__(self, function: Callable[..., Any], name: str, keywords: dict[str, Any], runs_program: bool = False) -> None:
        self.function = function
        self.__name__ = name
        self.keywords = keywords
        self.runs_program = runs_program

    def __call__(self, module: Any, inputs: Sequence[Any]) -> Any:
        return self.function(module, inputs, **self.keywords)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Backend) and self.function == other.function and self.keywords == other.keywords

    def __hash__(self) -> int:
        return hash(self.__name__)

    @property
    def is_registered(self) -> bool:
        """Whether it came from torch's own list: those backends read node.meta while tracing modes are on."""
        return self._registered

    _registered = False

    def reset(self) -> None:
        reset = getattr(self.function, "reset", None)
        if callable(reset):
            reset()


def _run_as_captured(module: Any, inputs: Sequence[Any], **_: Any) -> Any:
    return module.forward


def resolve(backend: Any, mode: str | None = None, options: dict[str, Any] | None = None, dynamic: bool | None = None) -> Backend:
    """As torch.compile does it; "eager" alone needs nothing of torch._dynamo. Raises torch's InvalidBackend for unknown names."""
    keywords: dict[str, Any] = {}
    if mode and mode != "default":
        keywords["mode"] = mode
    if options:
        keywords["options"] = options
    if isinstance(backend, Backend):
        return backend
    if backend == "eager":
        return Backend(_run_as_captured, "eager", keywords, runs_program=True)
    if backend == "inductor":
        wrapper = torch._TorchCompileInductorWrapper(mode, options, dynamic)  # type: ignore[no-untyped-call]
        made = Backend(wrapper, "inductor", {})
        made._registered = True
        return made
    if isinstance(backend, str):
        made = Backend(_look_up(backend), backend, keywords)
        made._registered = True
        return made
    if not callable(backend):
        raise TypeError(f"backend must be a name or a callable (gm, example_inputs), not {type(backend).__name__}")
    return Backend(backend, getattr(backend, "__name__", str(backend)), keywords)


def _look_up(name: str) -> Callable[..., Any]:
    from torch._dynamo.backends.registry import list_backends, lookup_backend
    from torch._dynamo.exc import InvalidBackend

    try:
        return lookup_backend(name)
    except InvalidBackend as error:
        error.args = (f"{error.args[0]} They are: {', '.join(list_backends(None))}.", *error.args[1:])
        raise


def compile_graph(program: GraphProgram, example_inputs: Sequence[Any], options: CompileOptions) -> CompiledGraph:
    """Called by the engine with a finished graph and its real inputs, under the grad mode that the frame was entered with.

    Returns a callable that takes the inputs one by one and returns a tuple or list. Raises what the backend's failure means.
    """
    subclassed = [i for i, x in enumerate(example_inputs) if isinstance(x, torch.Tensor) and type(x) not in (torch.Tensor, torch.nn.Parameter)]
    if not subclassed:
        return _compile_graph(program, example_inputs, options)
    # What a __torch_function__ does was traced: in the graph its tensors are plain ones.
    with torch._C.DisableTorchFunctionSubclass():
        if options.backend.runs_program:
            return _without_torch_function(program, [])
        return _without_torch_function(_compile_graph(program, _plain(example_inputs, subclassed), options), subclassed)


def without_modes(compiled: CompiledGraph) -> CompiledGraph:
    """The same with the torch-function modes around the call switched off: the graph has their work in it."""

    def run(*inputs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return compiled(*inputs)

    return run


def _plain(inputs: Sequence[Any], subclassed: list[int]) -> list[Any]:
    plain = list(inputs)
    for i in subclassed:
        plain[i] = plain[i].as_subclass(torch.Tensor)
    return plain


def _without_torch_function(compiled: CompiledGraph, subclassed: list[int]) -> CompiledGraph:
    def run(*inputs: Any) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return compiled(*(_plain(inputs, subclassed) if subclassed else inputs))

    return run


def _compile_graph(program: GraphProgram, example_inputs: Sequence[Any], options: CompileOptions) -> CompiledGraph:
    backend = options.backend
    if backend.runs_program:
        return program
    compile_id = _compile_ids.latest()
    context = BackendContext(example_inputs, [GraphSource(name) for name in program.inputs])
    module = to_graph_module(program, context, compile_id, example_inputs)
    with backend_call(context, compile_id):
        try:
            if backend.is_registered:
                _prepare_for_registered(module, backend)
            steps.info("Step 2: calling compiler function %s", backend.__name__)
            result = backend(module, list(example_inputs))
            steps.info("Step 2: done compiler function %s", backend.__name__)
            if not callable(result):
                raise AssertionError("compiler_fn did not return callable")
        except Exception as error:
            return _after_failure(error, program, options)
    return _shortest(result, module, program)


def _prepare_for_registered(module: LazyGraphModule, backend: Backend) -> None:
    module.fill_meta()
    if not (backend.__name__.startswith("aot") or backend.__name__ == "inductor"):
        module.recompile()


def _shortest(result: Any, module: LazyGraphModule, program: GraphProgram) -> CompiledGraph:
    """A backend that gives the graph back unchanged gets it run without the way through torch.fx."""
    if result is module and module.is_pristine():
        return program
    compiled: CompiledGraph = result
    return compiled


def _after_failure(error: Exception, program: GraphProgram, options: CompileOptions) -> CompiledGraph:
    from torch._dynamo.exc import BackendCompilerFailed, ShortenTraceback, SkipFrame, TensorifyScalarRestartAnalysis
    from torch._subclasses import fake_tensor

    if isinstance(error, (ShortenTraceback, SkipFrame, TensorifyScalarRestartAnalysis, IndexError)):
        raise error
    fallback = (
        fake_tensor.DataDependentOutputException,
        fake_tensor.DynamicOutputShapeException,
        fake_tensor.UnsupportedOperatorException,
        fake_tensor.UnsupportedFakeTensorException,
    )
    if isinstance(error, fallback) and not options.fullgraph:
        log.warning("backend %r cannot compile this graph (%s: %s); it runs as captured", options.backend.__name__, type(error).__name__, error)
        return program
    failed = BackendCompilerFailed(options.backend, error, inspect.currentframe())
    if config.suppress_errors and not options.fullgraph:
        log.warning("%s; the graph runs as captured, since suppress_errors is set", failed)
        return program
    raise failed.with_traceback(error.__traceback__) from error
