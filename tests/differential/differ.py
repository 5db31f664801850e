"""The differential oracle: a case runs eagerly and compiled, and everything a user could see must be equal.

A case is a function and a factory of its arguments. Each world (eager, a counting backend, backend="eager", only callees captured) builds
its own copy of everything, calls the function twice, then once after each declared change, and all worlds are compared after each call:

    @case(lambda: (t(3), 2))
    def scaled(x, n):
        return x * n

    @scenario()
    def counts():
        n = 0
        def f(x):
            nonlocal n
            n += 1
            return x * 2
        return Setup(f, lambda: (t(3),), watch=lambda: n)
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import dataclasses
import io
import os
import random
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from known import KNOWN

import cdynamo
import cdynamo._torch_library
from cdynamo import _C
from cdynamo._compile import make_options
from cdynamo._events import listening


def t(*shape: int, seed: int = 0, grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor whose values depend on the seed alone."""
    made = torch.rand(*shape, generator=torch.Generator().manual_seed(seed + 1))
    made = (made * 10).to(dtype) if not dtype.is_floating_point else made.to(dtype) + 0.1
    return made.requires_grad_() if grad else made


@dataclasses.dataclass
class Setup:
    """One world's function: what is called, with what, what else may be seen to change, and how to change the world."""

    fn: Callable[..., Any]
    args: Callable[[], Any] = lambda: ()
    watch: Callable[[], Any] = lambda: None
    changes: Sequence[Callable[[], Any]] = ()
    after: Callable[[Any], Any] = lambda result: None  # run on the result outside of the compiled function (backward, ...)
    cleanup: Callable[[], Any] = lambda: None


@dataclasses.dataclass
class Case:
    name: str
    build: Callable[[], Setup]
    graphs: int = 1  # of the first call
    ops: list[str] | int | None = None  # of the first call
    skip: str | None = None  # reason code of the first break; "*": any (the frame goes on after it)
    captures: tuple[int, ...] = (1, 0)  # captures made by the first, the second, ... call
    after_change: tuple[int | None, ...] | None = None  # captures made by the call after each change; None: any number


class Cases:
    def __init__(self) -> None:
        self.cases: list[Case] = []

    def case(self, args: Callable[[], Any] = lambda: (), **expect: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def add(fn: Callable[..., Any]) -> Callable[..., Any]:
            self.cases.append(Case(fn.__name__, lambda: Setup(fn, args), **expect))
            return fn

        return add

    def scenario(self, **expect: Any) -> Callable[[Callable[[], Setup]], Callable[[], Setup]]:
        def add(build: Callable[[], Setup]) -> Callable[[], Setup]:
            self.cases.append(Case(build.__name__, build, **expect))
            return build

        return add

    def as_test(self, module: str) -> Callable[..., None]:
        topic = module.rpartition(".")[2].removeprefix("test_")
        names = [c.name for c in self.cases]
        assert len(set(names)) == len(names), [n for n in names if names.count(n) > 1]

        def param(c: Case) -> Any:
            reason = KNOWN.get(f"{topic}.{c.name}")
            return pytest.param(c, id=c.name, marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])

        @pytest.mark.parametrize("c", [param(c) for c in self.cases])
        def test(c: Case) -> None:
            check(c)

        return test


def outcome(action: Callable[[], Any]) -> Any:
    """For cases: what the action gives, or what it raises."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


# ---- running a world ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Events:
    """What the engine said during one call."""

    captures: int = 0
    ops: list[list[str]] = dataclasses.field(default_factory=list)
    breaks: list[str] = dataclasses.field(default_factory=list)
    recompiles: list[str] = dataclasses.field(default_factory=list)

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "capture":
            self.captures += 1
            if payload.get("graph") is not None:
                nodes = payload["graph"].describe(False)
                self.ops.append([getattr(n[1], "__name__", str(n[1])) for n in nodes if n[0].startswith("call")])
        elif kind == "break":
            self.breaks.append(f"{payload['reason']}: {payload.get('context')} @ {(payload.get('stack') or [None])[-1]}")
        elif kind == "recompile":
            self.recompiles += [str(text) for text in payload.get("failed") or ()]


@dataclasses.dataclass
class Seen:
    """All that one call let its caller see."""

    result: Any = None
    error: BaseException | None = None
    shown: list[Any] = dataclasses.field(default_factory=list)  # the frames of its traceback
    args: Any = None
    watched: Any = None
    after: Any = None
    out: str = ""
    warned: list[Any] = dataclasses.field(default_factory=list)
    state: Any = None
    events: Events = dataclasses.field(default_factory=Events)


def shown_frames(error: BaseException) -> list[Any]:
    """What a debugger would show of the program's frames: function, line, names of variables."""
    frames = list(traceback.walk_tb(error.__traceback__))
    others = (__file__, cdynamo._torch_library.__file__, os.path.dirname(torch.__file__))
    return [(f.f_code.co_name, line, sorted(f.f_locals)) for f, line in frames if not f.f_code.co_filename.startswith(others)]


def let_frames_go(error: BaseException | None, met: tuple[BaseException, ...] = ()) -> None:
    """Frames that a traceback names keep their locals alive; those of captured code may hold fewer."""
    if error is not None and not any(error is other for other in met):
        traceback.clear_frames(error.__traceback__)
        for other in (error.__context__, error.__cause__):
            let_frames_go(other, (*met, error))


def observe(call: Callable[..., Any], setup: Setup) -> Seen:
    seen = Seen()
    given = setup.args()
    args, kwargs = (
        given if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict) else (given, {})
    )
    seen.args = (args, kwargs)
    torch.manual_seed(7)
    random.seed(7)
    out = io.StringIO()
    with warnings.catch_warnings(record=True) as warned, listening(seen.events.record), contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            seen.result = call(*args, **kwargs)
        except Exception as error:
            if isinstance(error, cdynamo.InternalError):
                raise
            seen.error = error
            seen.shown = shown_frames(error)
            let_frames_go(error)
    seen.warned = [(w.category, str(w.message)) for w in warned]
    seen.out = out.getvalue()
    seen.state = (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_default_dtype(),
        torch.get_rng_state(),
        random.getstate(),
    )
    if seen.error is None:
        seen.after = setup.after(seen.result)
    seen.watched = setup.watch()
    return seen


def counting(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
    return gm.forward


def callees_captured(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A world where the function itself runs eagerly and what it calls is captured, through the frame hook."""
    options = make_options(backend="eager")
    code = getattr(fn, "__code__", None)
    if code is not None:
        _C._skip_code(code)
    return lambda *args, **kwargs: _C._call_with_hook(options, fn, *args, **kwargs)


def run_world(case: Case, backend: Any) -> list[Seen]:
    cdynamo.reset()
    setup = case.build()
    try:
        call = setup.fn
        if backend is callees_captured:
            call = callees_captured(call)
        elif backend is not None:
            call = cdynamo.compile(call, backend=backend)
        history = [observe(call, setup) for _ in range(2)]
        for change in setup.changes:
            change()
            history.append(observe(call, setup))
        return history
    finally:
        setup.cleanup()
        torch.set_grad_enabled(True)
        cdynamo.reset()


def check(case: Case) -> None:
    with cdynamo.config.patch(strict=True):
        for backend in (counting, "eager", callees_captured):
            eager = run_world(case, None)  # anew: comparing uses iterators up
            compiled = run_world(case, backend)
            for step, (expected, actual) in enumerate(zip(eager, compiled, strict=True)):
                where = f"{getattr(backend, '__name__', backend)}, call {step}"
                said = "; ".join(actual.events.breaks)
                try:
                    Comparison().compare(expected, actual, where)
                except AssertionError as error:
                    raise AssertionError(
                        f"{error}\nengine said: {said or 'nothing'}; eager error: {expected.error!r}; compiled error: {actual.error!r}"
                    ) from actual.error
            if backend is not callees_captured:
                check_events(case, [seen.events for seen in compiled])


def check_events(case: Case, calls: list[Events]) -> None:
    first = calls[0]
    if case.skip is not None:
        assert first.breaks, f"expected a break ({case.skip}), but the call was captured: {first.ops}"
        assert case.skip == "*" or first.breaks[0].startswith(case.skip), first.breaks
        return
    assert not first.breaks, first.breaks
    assert len(first.ops) == case.graphs, first.ops
    if isinstance(case.ops, int):
        assert sum(map(len, first.ops)) == case.ops, first.ops
    elif case.ops is not None:
        assert [name for graph in first.ops for name in graph] == case.ops
    for i, expected in enumerate(case.captures):
        assert calls[i].captures == expected, f"call {i} made {calls[i].captures} captures: {calls[i].recompiles} {calls[i].breaks}"
    for i, wanted in enumerate(case.after_change or ()):
        if wanted is not None:
            now = calls[2 + i]
            assert now.captures == wanted, f"after change {i}: {now.captures} captures: {now.recompiles} {now.breaks}"


# ---- comparing ---------------------------------------------------------------------------------------------------------

ATOMS = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range, slice)
BY_IDENTITY = (torch.dtype, torch.device, torch.layout, torch.memory_format, types.ModuleType, types.BuiltinFunctionType, types.MethodDescriptorType)


class Comparison:
    """Walks two object graphs side by side; the same object here must be the same object there."""

    def __init__(self) -> None:
        self.pairs: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self.storages: dict[int, int] = {}
        self.storages_back: dict[int, int] = {}
        self.keep: list[Any] = []

    def compare(self, a: Seen, b: Seen, where: str) -> None:
        if (a.error is None) != (b.error is None):
            raise AssertionError(f"{where}: one raised, the other did not")
        self.walk(a.error, b.error, f"{where}: error")
        # Where recursion ends is the interpreter's affair; 3.11 itself tells another line for an unbound name once the code is warm.
        if not isinstance(a.error, (RecursionError, UnboundLocalError)):
            self.walk([frame[:2] for frame in a.shown], [frame[:2] for frame in b.shown], f"{where}: traceback")
        for all_names, names in zip(a.shown, b.shown, strict=False):
            # A variable that is dead after a break, or inside a graph that fails, is not there any more.
            self.walk(set(names[2]) <= set(all_names[2]), True, f"{where}: variables {names} of {all_names}")
        for part in ("args", "result", "watched", "after", "warned", "out", "state"):
            self.walk(getattr(a, part), getattr(b, part), f"{where}: {part}")

    def fail(self, path: str, a: Any, b: Any, what: str = "differs") -> None:
        raise AssertionError(f"{path} {what}: eager {short(a)}, compiled {short(b)}")

    def same_type(self, a: Any, b: Any, path: str) -> None:
        ta, tb = type(a), type(b)
        if ta is not tb and (ta.__qualname__, ta.__module__) != (tb.__qualname__, tb.__module__):
            self.fail(path, ta, tb, "has another type")

    def paired(self, a: Any, b: Any, path: str) -> bool:
        """True where the two were met before (together); identity patterns must agree."""
        if id(a) in self.pairs or id(b) in self.back:
            if self.pairs.get(id(a)) != id(b) or self.back.get(id(b)) != id(a):
                self.fail(path, a, b, "has another identity")
            return True
        self.pairs[id(a)], self.back[id(b)] = id(b), id(a)
        self.keep += (a, b)
        return False

    def walk(self, a: Any, b: Any, path: str) -> None:
        self.same_type(a, b, path)
        if isinstance(a, ATOMS) and type(a) in ATOMS:
            if repr(a) != repr(b):
                self.fail(path, a, b)
            return
        if isinstance(a, (*BY_IDENTITY, type)):
            if a is not b and getattr(a, "__qualname__", repr(a)) != getattr(b, "__qualname__", repr(b)):
                self.fail(path, a, b)
            return
        shared_constant = type(a) in (tuple, frozenset) and not holds_objects(a)
        if not shared_constant and self.paired(a, b, path):
            return
        if isinstance(a, torch.Tensor):
            self.tensors(a, b, path)
        elif isinstance(a, BaseException):
            self.exceptions(a, b, path)
        elif isinstance(a, types.FunctionType):
            if a.__code__ is not b.__code__ or a.__name__ != b.__name__ or a.__qualname__ != b.__qualname__:
                self.fail(path, a, b)
            self.walk(a.__defaults__, b.__defaults__, path + ".__defaults__")
            self.walk(a.__kwdefaults__, b.__kwdefaults__, path + ".__kwdefaults__")
            self.walk(a.__closure__, b.__closure__, path + ".__closure__")
            for part in ("__annotations__", "__doc__", "__module__"):
                self.walk(getattr(a, part), getattr(b, part), f"{path}.{part}")
            self.contents(a.__dict__, b.__dict__, path + ".__dict__")
        elif isinstance(a, types.CellType):
            if repr(a).endswith("empty>") or repr(b).endswith("empty>"):
                assert repr(a).endswith("empty>") == repr(b).endswith("empty>"), path
                return
            self.walk(a.cell_contents, b.cell_contents, path + ".cell_contents")
        elif isinstance(a, types.MethodType):
            self.walk(a.__func__, b.__func__, path + ".__func__")
            self.walk(a.__self__, b.__self__, path + ".__self__")
        elif isinstance(a, collections.abc.Iterator):
            self.iterators(a, b, path)
        else:
            self.contents(a, b, path)
        for part in ("__dict__",):
            if not isinstance(a, (types.FunctionType, BaseException)) and hasattr(a, part) and type(getattr(a, part)) is dict:
                self.contents(getattr(a, part), getattr(b, part), path + "." + part)
        for cls in type(a).__mro__:
            slots = cls.__dict__.get("__slots__", ())
            for slot in (slots,) if isinstance(slots, str) else slots:
                if slot in ("__dict__", "__weakref__"):
                    continue
                slot = f"_{cls.__name__.lstrip('_')}{slot}" if slot.startswith("__") and not slot.endswith("__") else slot
                if hasattr(a, slot) != hasattr(b, slot):
                    self.fail(path, a, b, f"differs in having {slot}")
                if hasattr(a, slot):
                    self.walk(getattr(a, slot), getattr(b, slot), f"{path}.{slot}")

    def exceptions(self, a: BaseException, b: BaseException, path: str) -> None:
        self.walk(a.args, b.args, path + ".args")
        for part in ("__cause__", "__context__", "__suppress_context__", "name", "obj", "value", "errno", "filename", "exceptions", "message"):
            if hasattr(a, part) != hasattr(b, part):
                self.fail(path, a, b, f"differs in having {part}")
            if hasattr(a, part):
                self.walk(getattr(a, part), getattr(b, part), f"{path}.{part}")
        self.contents(a.__dict__, b.__dict__, path + ".__dict__")

    def iterators(self, a: Any, b: Any, path: str) -> None:
        """Compared by using them up (or 20 items of them), both side by side."""
        if isinstance(a, types.GeneratorType):
            for part in ("__name__", "__qualname__"):
                self.walk(getattr(a, part), getattr(b, part), f"{path}.{part}")
            self.walk(a.gi_frame is None, b.gi_frame is None, path + " finished")
            self.walk(a.gi_yieldfrom, b.gi_yieldfrom, path + ".gi_yieldfrom")
            if a.gi_frame is not None:
                self.walk(a.gi_frame.f_lineno, b.gi_frame.f_lineno, path + " line")
        for i in range(20):
            seen = []
            for it in (a, b):
                try:
                    seen.append((next(it), None))
                except Exception as error:
                    seen.append((None, error))
            self.walk(*seen, f"{path} item {i}"[:300])
            if seen[0][1] is not None:
                break

    def contents(self, a: Any, b: Any, path: str) -> None:
        if isinstance(a, dict):
            base = collections.OrderedDict if isinstance(a, collections.OrderedDict) else dict
            if list(map(repr_key, base.keys(a))) != list(map(repr_key, base.keys(b))):
                self.fail(path, list(base.keys(a)), list(base.keys(b)), "has other keys")
            for ka, kb in zip(base.keys(a), base.keys(b), strict=True):
                va, vb = dict.__getitem__(a, ka), dict.__getitem__(b, kb)
                self.walk(ka, kb, f"{path} key {ka!r}"[:300])
                self.walk(va, vb, f"{path}[{ka!r}]"[:300])
            if hasattr(a, "default_factory"):
                self.walk(a.default_factory, b.default_factory, path + ".default_factory")
        elif isinstance(a, (set, frozenset)):
            if all(isinstance(x, ATOMS) for x in a):
                if set(a) != set(b):
                    self.fail(path, a, b)
            elif len(a) != len(b):
                self.fail(path, a, b)
        elif isinstance(a, (list, tuple)) or type(a).__name__ == "deque":
            if len(a) != len(b):
                self.fail(path, a, b, "has another length")
            for i, (x, y) in enumerate(zip(list(a), list(b), strict=True)):
                self.walk(x, y, f"{path}[{i}]"[:300])

    def tensors(self, a: torch.Tensor, b: torch.Tensor, path: str) -> None:
        for name in ("dtype", "device", "layout", "requires_grad", "is_leaf", "shape"):
            if getattr(a, name) != getattr(b, name):
                self.fail(path, getattr(a, name), getattr(b, name), f"differs in {name}")
        if a.layout is torch.strided:
            if a.stride() != b.stride() or a.storage_offset() != b.storage_offset():
                self.fail(path, a.stride(), b.stride(), "differs in strides or offset")
            pa, pb = a.untyped_storage()._cdata, b.untyped_storage()._cdata
            if self.storages.setdefault(pa, pb) != pb or self.storages_back.setdefault(pb, pa) != pa:
                self.fail(path, a, b, "shares storage otherwise")
        if type(a.grad_fn).__name__ != type(b.grad_fn).__name__:
            self.fail(path, a.grad_fn, b.grad_fn, "has another grad_fn")
        x, y = (v.detach().as_subclass(torch.Tensor) for v in (a, b))
        if x.is_inference() != y.is_inference():
            self.fail(path, x.is_inference(), y.is_inference(), "differs in being an inference tensor")
        bits = x.dtype.is_floating_point or x.dtype.is_complex
        if not (torch.equal(x, y) or (bits and torch.equal(x.nan_to_num(123.5), y.nan_to_num(123.5)) and torch.equal(x.isnan(), y.isnan()))):
            self.fail(path, a, b, "has other values")
        if a.is_leaf and (a.grad is not None or b.grad is not None):
            self.walk(a.grad, b.grad, path + ".grad")


def holds_objects(v: Any) -> bool:
    if type(v) in (tuple, frozenset):
        return any(holds_objects(x) for x in v)
    return not (type(v) in ATOMS or isinstance(v, (*BY_IDENTITY, type)))


def repr_key(key: Any) -> str:
    return repr(key) if isinstance(key, (*ATOMS, tuple)) else type(key).__name__


def short(v: Any) -> str:
    text = repr(v)
    return text if len(text) < 400 else text[:400] + "..."
