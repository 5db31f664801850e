"""operator, bisect, heapq, lru_cache and what copy and pickle ask objects for, as Python that the interpreter traces (see polyfills.py)."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import collections
import copyreg
import logging
import operator
import types
import typing

from cdynamo import _C
from cdynamo._own_builtins import __builtins__  # type: ignore[attr-defined,no-redef] # noqa: F401
from cdynamo._stand_ins import native

_missing = object()

# ---- operator ----------------------------------------------------------------------------------------------------------


def _searched(a):
    try:
        return iter(a)
    except TypeError:
        pass
    raise TypeError(f"argument of type '{type(a).__name__}' is not iterable")


def indexOf(a, b, /):
    for i, item in enumerate(_searched(a)):
        if item is b or item == b:
            return i
    raise ValueError("sequence.index(x): x not in sequence")


def countOf(a, b, /):
    return sum(1 for item in _searched(a) if item is b or item == b)


def call(obj, /, *args, **kwargs):
    return obj(*args, **kwargs)


def length_hint(obj, default=0, /):
    default = int(operator.index(default))
    if hasattr(type(obj), "__len__"):
        try:
            return len(obj)
        except TypeError:
            pass
    hint = getattr(type(obj), "__length_hint__", None)
    if hint is None:
        return default
    try:
        answer = hint(obj)
    except TypeError:
        return default
    if answer is NotImplemented:
        return default
    if not isinstance(answer, int):
        raise TypeError(f"__length_hint__ must be an integer, not {type(answer).__name__}")
    if answer < 0:
        raise ValueError("__length_hint__() should return >= 0")
    return answer


# ---- texts and paths -----------------------------------------------------------------------------------------------------


def ascii(obj, /):
    text = repr(obj)
    if str.isascii(text):
        return text
    return str.encode(text, "ascii", "backslashreplace").decode("ascii")


def fspath(path):
    if isinstance(path, (str, bytes)):
        return path
    method = getattr(type(path), "__fspath__", None)
    if method is None:
        raise TypeError(f"expected str, bytes or os.PathLike object, not {type(path).__name__}")
    answer = method(path)
    if not isinstance(answer, (str, bytes)):
        raise TypeError(f"expected {type(path).__name__}.__fspath__() to return str or bytes, not {type(answer).__name__}")
    return answer


def parsed_format(text):
    return tuple(_string.formatter_parser(text))


def parsed_field_name(name):
    first, rest = _string.formatter_field_name_split(name)
    return first, tuple(rest)


def formatter_parser(text, /):
    return iter(native(parsed_format, text))


def formatter_field_name_split(name, /):
    first, rest = native(parsed_field_name, name)
    return first, iter(rest)


def unwrap(func, *, stop=None):
    """inspect.unwrap, with as many wrappers as there are."""
    original, seen = func, [func]
    while hasattr(func, "__wrapped__") and not (stop is not None and stop(func)):
        func = func.__wrapped__
        for known in seen:
            if known is func:
                raise ValueError(f"wrapper loop when unwrapping {original!r}")
        seen.append(func)
    return func


def get_logger(name=None):
    """logging.getLogger of one that is there already; its manager makes the others."""
    if not name or (isinstance(name, str) and name == logging.root.name):
        return logging.root
    known = logging.root.manager.loggerDict.get(name) if isinstance(name, str) else None
    return known if isinstance(known, logging.Logger) else logging.root.manager.getLogger(name)


# ---- bisect ------------------------------------------------------------------------------------------------------------


def bisect_right(a, x, lo=0, hi=None, *, key=None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        item = a[mid] if key is None else key(a[mid])
        if x < item:
            hi = mid
        else:
            lo = mid + 1
    return lo


def bisect_left(a, x, lo=0, hi=None, *, key=None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        item = a[mid] if key is None else key(a[mid])
        if item < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def insort_right(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_left(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


# ---- heapq: the order of comparisons is that of _heapqmodule.c -----------------------------------------------------------


def _less(a, b):
    return a < b


def _greater(a, b):
    return b < a


def _check(heap):
    if not isinstance(heap, list):
        raise TypeError("heap argument must be a list")


def _sift_down(heap, start, at, before):
    item = heap[at]
    while at > start:
        parent_at = (at - 1) >> 1
        parent = heap[parent_at]
        if not before(item, parent):
            break
        heap[parent_at], heap[at] = heap[at], parent
        at = parent_at


def _sift_up(heap, at, before):
    end, start = len(heap), at
    while at < end >> 1:
        child = 2 * at + 1
        if child + 1 < end and not before(heap[child], heap[child + 1]):
            child += 1
        heap[at], heap[child] = heap[child], heap[at]
        at = child
    _sift_down(heap, start, at, before)


def _pop(heap, before):
    _check(heap)
    if not heap:
        raise IndexError("index out of range")
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sift_up(heap, 0, before)
    return first


def _replace(heap, item, before):
    _check(heap)
    if not heap:
        raise IndexError("index out of range")
    first = heap[0]
    heap[0] = item
    _sift_up(heap, 0, before)
    return first


def _order(heap, before):
    _check(heap)
    for i in range((len(heap) >> 1) - 1, -1, -1):
        _sift_up(heap, i, before)


def heappush(heap, item, /):
    _check(heap)
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1, _less)


def heappop(heap, /):
    return _pop(heap, _less)


def heapify(heap, /):
    _order(heap, _less)


def heapreplace(heap, item, /):
    return _replace(heap, item, _less)


def heappushpop(heap, item, /):
    _check(heap)
    return _replace(heap, item, _less) if heap and heap[0] < item else item


def heappop_max(heap, /):
    return _pop(heap, _greater)


def heapify_max(heap, /):
    _order(heap, _greater)


def heapreplace_max(heap, item, /):
    return _replace(heap, item, _greater)


# ---- copying and pickling ----------------------------------------------------------------------------------------------


def object_reduce_ex(self, protocol, /):
    protocol = operator.index(protocol)
    cls = type(self)
    if cls.__reduce__ is not object.__reduce__:
        return self.__reduce__()
    if protocol < 2:
        return copyreg._reduce_ex(self, protocol)
    args, kwargs = _new_arguments(self, cls)
    if cls.__getstate__ is object.__getstate__:
        state = _plain_state(self, args is None and not isinstance(self, (list, dict)))
    else:
        state = self.__getstate__()
    listitems = iter(self) if isinstance(self, list) else None
    dictitems = iter(self.items()) if isinstance(self, dict) else None
    if kwargs:
        return copyreg.__newobj_ex__, (cls, args, kwargs), state, listitems, dictitems
    return copyreg.__newobj__, (cls, *(args or ())), state, listitems, dictitems


def _new_arguments(self, cls):
    if hasattr(cls, "__getnewargs_ex__"):
        given = self.__getnewargs_ex__()
        if not isinstance(given, tuple):
            raise TypeError(f"__getnewargs_ex__ should return a tuple, not '{type(given).__name__}'")
        if len(given) != 2:
            raise ValueError(f"__getnewargs_ex__ should return a tuple of length 2, not {len(given)}")
        args, kwargs = given
        if not isinstance(args, tuple):
            raise TypeError(f"first item of the tuple returned by __getnewargs_ex__ must be a tuple, not '{type(args).__name__}'")
        if not isinstance(kwargs, dict):
            raise TypeError(f"second item of the tuple returned by __getnewargs_ex__ must be a dict, not '{type(kwargs).__name__}'")
        return args, kwargs
    if hasattr(cls, "__getnewargs__"):
        args = self.__getnewargs__()
        if not isinstance(args, tuple):
            raise TypeError(f"__getnewargs__ should return a tuple, not '{type(args).__name__}'")
        return args, None
    return None, None


def _slot_names(cls):
    """copyreg._slotnames, without leaving them in the class."""
    known = cls.__dict__.get("__slotnames__")
    if known is not None:
        return known
    names = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in ("__dict__", "__weakref__"):
                continue
            if name.startswith("__") and not name.endswith("__"):
                stripped = base.__name__.lstrip("_")
                name = f"_{stripped}{name}" if stripped else name
            names.append(name)
    return names


def object_getstate(self, /):
    return _plain_state(self, False)


def _plain_state(self, required):
    cls = type(self)
    if required and cls.__itemsize__:
        shown = f"'{cls.__name__}' object" if cls.__new__ is object.__new__ else f"{cls.__name__} objects"
        raise TypeError(f"cannot pickle {shown}")
    state = getattr(self, "__dict__", None) or None
    names = _slot_names(cls)
    if required:
        places = (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0) + len(names)
        if cls.__basicsize__ > object.__basicsize__ + tuple.__itemsize__ * places:
            if getattr(self, "stands_for", None) is cls:
                native(object.__reduce_ex__, self, 4)  # in CPython's words
            raise TypeError(f"cannot pickle '{cls.__name__}' object")
    slots = {}
    for name in names:
        value = getattr(self, name, _missing)
        if value is not _missing:
            slots[name] = value
    return (state, slots) if slots else state


def exception_reduce(self, /):
    return (type(self), self.args, self.__dict__) if self.__dict__ else (type(self), self.args)


def set_reduce(self, /):
    return type(self), (list(self),), self.__getstate__()


def deque_reduce(self, /):
    return type(self), () if self.maxlen is None else ((), self.maxlen), self.__getstate__(), iter(self)


def ordered_dict_reduce(self, /):
    return type(self), (), self.__getstate__(), None, iter(self.items())


def default_dict_reduce(self, /):
    return type(self), () if self.default_factory is None else (self.default_factory,), None, None, iter(self.items())


def namespace_reduce(self, /):
    return type(self), (), self.__dict__


def slice_reduce(self, /):
    return slice, (self.start, self.stop, self.step)


def ordered_dict_copy(self):
    """OrderedDict.copy of a subclass's object."""
    made = type(self)()
    for key in list(self):
        made[key] = self[key]
    return made


# ---- typing.NamedTuple ---------------------------------------------------------------------------------------------------


def named_tuple_with_hints(name, fields, hints, module, defaults):
    """The interpreter makes a class of it; in each run of the capture it is called."""
    made = collections.namedtuple(name, fields, defaults=defaults, module=module)
    made.__annotations__ = made.__new__.__annotations__ = hints
    return made


def make_nmtuple(name, types, module, defaults=()):
    hints = {field: typing._type_check(hint, f"field {field} annotation must be a type") for field, hint in types}
    return named_tuple_with_hints(name, list(hints), hints, module, list(defaults))


# ---- types -------------------------------------------------------------------------------------------------------------


def namespace_repr(self, /):
    name = "namespace" if type(self) is types.SimpleNamespace else type(self).__name__
    return f"{name}({', '.join([f'{key}={value!r}' for key, value in self.__dict__.items()])})"


def namespace_eq(self, other, /):
    return self.__dict__ == other.__dict__ if issubclass(type(other), types.SimpleNamespace) else NotImplemented


def namespace_ne(self, other, /):
    return self.__dict__ != other.__dict__ if issubclass(type(other), types.SimpleNamespace) else NotImplemented


# ---- functools.lru_cache ---------------------------------------------------------------------------------------------------


def call_for_cache(cache, function, args, kwargs):
    """A call of an lru_cache that has no result for it."""
    try:
        result = function(*args, **kwargs)
    except BaseException:
        _C.lru_raised(cache, args, kwargs)
        raise
    _C.lru_called(cache, args, kwargs, result)
    return result
