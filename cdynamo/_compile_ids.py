"""Names of captures as torch gives them: [frame/compile], such as 0/0 for the first capture of the first function and 0/1 for its recompile."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from types import CodeType

from torch._guards import CompileContext, CompileId, compile_context

from ._own_builtins import __builtins__  # noqa: F401

_lock = threading.Lock()
_frames: dict[int, _Frame] = {}  # by id of the code object: equal code objects are not the same one
_counts = {"frames": 0}
_current = threading.local()


class _Frame:
    def __init__(self, code: CodeType, number: int) -> None:
        key = id(code)
        self.code = weakref.ref(code, lambda _: _frames.pop(key, None))
        self.number = number
        self.captures = 0


def start(code: CodeType) -> CompileId:
    """A capture of `code` begins on this thread."""
    with _lock:
        frame = _frame_of(code)
        made = CompileId(frame_id=frame.number, frame_compile_id=frame.captures)
        frame.captures += 1
    _current.id = made
    return made


def upcoming(code: CodeType | None) -> CompileId | None:
    """The id that the next capture of `code` will have."""
    if code is None:
        return None
    with _lock:
        frame = _frame_of(code)
    return CompileId(frame_id=frame.number, frame_compile_id=frame.captures)


def latest() -> CompileId:
    """The id of the capture that this thread began last; a new one where there was none. Captures do not nest."""
    found: CompileId | None = getattr(_current, "id", None)
    if found is None:
        with _lock:
            found = CompileId(frame_id=_next_number(), frame_compile_id=0)
    return found


def reset() -> None:
    with _lock:
        _frames.clear()
        _counts["frames"] = 0
    _current.__dict__.clear()


@contextlib.contextmanager
def said_under(compile_id: CompileId | None) -> Iterator[None]:
    """Log records of the block carry the id."""
    if compile_id is None:
        yield
    else:
        with compile_context(CompileContext(compile_id)):
            yield


def _frame_of(code: CodeType) -> _Frame:
    frame = _frames.get(id(code))
    if frame is None or frame.code() is not code:
        frame = _frames[id(code)] = _Frame(code, _next_number())
    return frame


def _next_number() -> int:
    number = _counts["frames"]
    _counts["frames"] += 1
    return number
