"""cdynamo.install(): torch.compile and its relatives mean cdynamo."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch

from ._compile import CompiledModule, apply, compile_with, make_options
from ._decorators import disable, run, substitute
from ._explain import explain
from ._front import reset
from ._stance import STANCES, change

_replaced: list[tuple[Any, str, Any]] = []
_finder: _AfterImport | None = None


def install() -> None:
    """Until uninstall(), torch.compile, nn.Module.compile and torch._dynamo.optimize use cdynamo. Twice is once.

    torch._dynamo is not imported for this; if it comes later, it is changed then.
    """
    global _finder
    if _replaced:
        return
    _replace(torch, "compile", _torch_compile)
    if "torch._dynamo" in sys.modules:
        _change_dynamo(sys.modules["torch._dynamo"])
    else:
        _finder = _AfterImport("torch._dynamo", _change_dynamo)
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Puts everything back."""
    global _finder
    if _finder is not None and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _finder = None
    while _replaced:
        owner, name, original = _replaced.pop()
        setattr(owner, name, original)


def is_installed() -> bool:
    return bool(_replaced)


def _replace(owner: Any, name: str, value: Any) -> None:
    if hasattr(owner, name):
        _replaced.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)


def _torch_compile(model: Any = None, *, backend: Any = None, **arguments: Any) -> Any:
    known = {"fullgraph", "dynamic", "mode", "options", "name", "disable", "recompile_limit", "isolate_recompiles", "shapes_spec"}
    for name in arguments:
        if name not in known:
            raise TypeError(f"compile() got an unexpected keyword argument {name!r}")
    if backend is None:
        registry = sys.modules.get("torch._dynamo.backends.registry")
        backend = registry.get_default_backend() if registry is not None else "inductor"
    return compile_with(model, backend=backend, **arguments)


def _optimize(backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, dynamic: bool | None = None, **arguments: Any) -> Any:
    """torch._dynamo.optimize(...) is a decorator; the hooks that watch torch's own guards do not apply."""
    if disable:
        return lambda fn: compile_with(fn, disable=True)
    options = make_options(backend=backend, fullgraph=nopython, dynamic=dynamic, recompile_limit=arguments.get("recompile_limit"))
    return lambda fn: apply(fn, options)


def _optimize_assert(backend: Any, **arguments: Any) -> Any:
    return _optimize(backend, nopython=True, **arguments)


def _change_dynamo(dynamo: ModuleType) -> None:
    """Every module of torch._dynamo that has already imported one of these names by value gets ours too."""
    eval_frame = sys.modules["torch._dynamo.eval_frame"]
    decorators = sys.modules["torch._dynamo.decorators"]
    ours = {
        id(eval_frame.optimize): _optimize,
        id(eval_frame.optimize_assert): _optimize_assert,
        id(eval_frame.explain): explain,
        id(eval_frame.OptimizedModule): CompiledModule,
        id(decorators._set_stance): _both_stances(decorators._set_stance),
        id(decorators.substitute_in_graph): _both_substitutes(decorators.substitute_in_graph),
        id(decorators.disable): disable,
        id(decorators.run): run,
        id(dynamo.reset): _and_ours(dynamo.reset),
        id(dynamo.reset_code_caches): _and_ours(dynamo.reset_code_caches),
    }
    for name, module in list(sys.modules.items()):
        if name.split(".")[:2] != ["torch", "_dynamo"] or module is None:
            continue
        for key, value in list(vars(module).items()):
            if id(value) in ours:
                _replace(module, key, ours[id(value)])


def _both_stances(theirs: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """torch.compiler.set_stance counts for cdynamo too."""

    def set_both(stance: Any) -> Any:
        if stance.stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}")
        change(stance)  # first: it may refuse
        return theirs(stance)

    set_both._dynamo_forbidden = True  # type: ignore[attr-defined]
    return set_both


def _both_substitutes(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """torch.compiler.substitute_in_graph counts for cdynamo too, except where torch itself uses it."""

    def substitute_both(original_fn: Any, **options: Any) -> Callable[[Any], Any]:
        decorate = theirs(original_fn, **options)

        def decorate_both(traceable: Any) -> Any:
            made = decorate(traceable)
            if not str(getattr(traceable, "__module__", "")).startswith("torch."):
                substitute(original_fn, made)
            return made

        return decorate_both

    return substitute_both


def _and_ours(theirs: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        theirs()
        reset()

    both.__doc__ = theirs.__doc__
    return both


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls `change` with a module right after its first import."""

    def __init__(self, name: str, change: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._change = change

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _ChangingLoader(spec.loader, self._change)
        return spec


class _ChangingLoader(importlib.abc.Loader):
    def __init__(self, loader: Any, change: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._change = change

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
