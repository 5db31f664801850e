"""The context that AOTAutograd and inductor expect around a backend call, made only as far as somebody asks for it.

A FakeTensorMode drags in `torch._dynamo.config` and sympy (a second), so that a backend which needs none must not pay.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import CompileContext, CompileId, GuardSource, Source, TracingContext, compile_context

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

_TLS: Any = torch._guards._TLS


class GraphSource(Source):
    """Where a graph input comes from, as text such as L['x']. Hashable and picklable; equal names are equal sources."""

    def __init__(self, name: str) -> None:
        # `name` and `guard_source` are cached properties of the base: an instance entry answers for them.
        self.__dict__["name"] = name
        self.__dict__["guard_source"] = GuardSource.GLOBAL if name.startswith("G[") else GuardSource.LOCAL

    @property
    def _name_template(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphSource) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> Any:
        # torch's compile caches on disk hold sources.
        return (GraphSource, (self.name,))

    def __repr__(self) -> str:
        return f"GraphSource({self.name!r})"


class BackendContext(TracingContext):
    """A TracingContext whose fake mode appears when it is first read.

    Inputs are described as static: sizes that a graph was captured with are what its guards check.
    """

    def __init__(self, inputs: Sequence[Any], sources: Sequence[GraphSource]) -> None:
        self._fake_mode: FakeTensorMode | None = None
        self._inputs: tuple[Sequence[Any], Sequence[GraphSource]] | None = (inputs, sources)
        super().__init__(None)

    @property
    def fake_mode(self) -> FakeTensorMode | None:
        if self._fake_mode is None and self._inputs is not None:
            inputs, sources = self._inputs
            self._inputs = None
            self._fake_mode = _new_fake_mode()
            self._describe_inputs(inputs, sources)
        return self._fake_mode

    @fake_mode.setter
    def fake_mode(self, mode: FakeTensorMode | None) -> None:
        if mode is not None:
            self._fake_mode = mode

    def release_inputs(self) -> None:
        """Forgets the example inputs; the fake mode is then made without them."""
        if self._inputs is not None:
            self._inputs = ((), ())

    def _describe_inputs(self, inputs: Sequence[Any], sources: Sequence[GraphSource]) -> None:
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatefulSymbolicContext

        for value, source in zip(inputs, sources):
            if isinstance(value, torch.Tensor) and value.layout is torch.strided and value not in self.tensor_to_context:
                self.tensor_to_context[value] = StatefulSymbolicContext(
                    dynamic_sizes=[DimDynamic.STATIC] * value.dim(),
                    constraint_sizes=[None] * value.dim(),
                    tensor_source=source,
                    shape_env_to_source_to_symbol_cache={},
                )


def _new_fake_mode() -> FakeTensorMode:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    # export: a tensor of no dimension gets no symbol for its value. AOTAutograd would ask for another capture because of it.
    return FakeTensorMode(shape_env=ShapeEnv(), export=True)


@contextlib.contextmanager
def _session() -> Iterator[None]:
    """torch.compiler.is_compiling() is true in a backend: torch's own context where this torch has it, else its flag."""
    make = getattr(torch.compiler, "_compile_session_context", None)
    if make is not None:
        with make():
            yield
        return
    before = getattr(torch.compiler, "_is_compiling_flag", False)
    torch.compiler._is_compiling_flag = True
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = before


@contextlib.contextmanager
def backend_call(context: BackendContext, compile_id: CompileId) -> Iterator[None]:
    """As torch._guards.tracing and compile_context together, but without touching the fake mode."""
    previous = getattr(_TLS, "tracing_context", None)
    _TLS.tracing_context = context
    try:
        with compile_context(CompileContext(compile_id)), _session():
            yield
    finally:
        _TLS.tracing_context = previous
        context.release_inputs()
        mode = context._fake_mode
        if mode is not None and mode.shape_env is not None:
            mode.shape_env.cleanup()
