"""Functions of the standard library written in C, or written with id(), as Python that the interpreter traces (see polyfills.py)."""

from __future__ import annotations

import collections
import copyreg
import operator
import types
import weakref

_missing = object()

# ---- operator ----------------------------------------------------------------------------------------------------------


def indexOf(a, b, /):
    for i, item in enumerate(a):
        if item is b or item == b:
            return i
    raise ValueError("sequence.index(x): x not in sequence")


def countOf(a, b, /):
    return sum(1 for item in a if item is b or item == b)


def iconcat(a, b, /):
    if not hasattr(a, "__getitem__"):
        raise TypeError(f"'{type(a).__name__}' object can't be concatenated")
    a += b
    return a


def call(obj, /, *args, **kwargs):
    return obj(*args, **kwargs)


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
    if not heap or not heap[0] < item:
        return item
    first = heap[0]
    heap[0] = item
    _sift_up(heap, 0, _less)
    return first


def heappop_max(heap, /):
    return _pop(heap, _greater)


def heapify_max(heap, /):
    _order(heap, _greater)


def heapreplace_max(heap, item, /):
    return _replace(heap, item, _greater)


# ---- copy --------------------------------------------------------------------------------------------------------------

_ATOMS = {
    type(None), int, float, bool, complex, bytes, str, type, range, types.CodeType, types.BuiltinFunctionType, types.FunctionType,
    type(Ellipsis), type(NotImplemented), property, weakref.ref,
}  # fmt: skip
_copies = object()  # the key in a memo under which the objects copied so far stand, with their copies


def copy_object(x):
    cls = type(x)
    if cls in _ATOMS or cls is tuple or cls is frozenset or cls is slice or issubclass(cls, type):
        return x
    if cls is list or cls is dict or cls is set:
        return cls.copy(x)
    copier = getattr(cls, "__copy__", None)
    if copier is not None:
        return copier(x)
    made = _known_containers(x, cls, lambda v: v)
    return _reconstruct(x, _reduce(x, cls), None) if made is None else made


def deepcopy_object(x, memo=None, _nil=None):
    if memo is None:
        memo = {}
    cls = type(x)
    if cls in _ATOMS or issubclass(cls, type):
        return x
    pairs = memo.get(_copies)
    if pairs is None:
        pairs = memo[_copies] = []
    for known, made in pairs:
        if known is x:
            return made
    if cls is list:
        made = []
        pairs.append((x, made))
        for item in x:
            made.append(deepcopy_object(item, memo))
        return made
    if cls is dict:
        made = {}
        pairs.append((x, made))
        for key, value in x.items():
            made[deepcopy_object(key, memo)] = deepcopy_object(value, memo)
        return made
    if cls is tuple:
        items = [deepcopy_object(item, memo) for item in x]
        for known, made in pairs:
            if known is x:
                return made
        made = x
        for old, new in zip(x, items):
            if old is not new:
                made = tuple(items)
                break
    elif cls is slice:
        made = slice(deepcopy_object(x.start, memo), deepcopy_object(x.stop, memo), deepcopy_object(x.step, memo))
    elif cls is types.MethodType:
        made = types.MethodType(x.__func__, deepcopy_object(x.__self__, memo))
    else:
        copier = getattr(x, "__deepcopy__", None)
        if copier is not None:
            made = copier(memo)
        else:
            made = _known_containers(x, cls, lambda v: deepcopy_object(v, memo))
            if made is None:
                made = _reconstruct(x, _reduce(x, cls), memo)
    if made is not x:
        pairs.append((x, made))
    return made


def _known_containers(x, cls, copied):
    """Copies of what has a __reduce__ written in C; None for everything else."""
    if cls is set or cls is frozenset:
        return cls([copied(item) for item in x])
    if cls is collections.deque:
        made = collections.deque(maxlen=x.maxlen)
        for item in x:
            made.append(copied(item))
        return made
    if cls is collections.OrderedDict or cls is collections.defaultdict:
        made = cls() if cls is collections.OrderedDict else cls(copied(x.default_factory))
        for key, value in x.items():
            made[copied(key)] = copied(value)
        return made
    return None


def _reduce(x, cls):
    reductor = copyreg.dispatch_table.get(cls)
    return x.__reduce_ex__(4) if reductor is None else reductor(x)


def _reconstruct(x, reduced, memo):
    if isinstance(reduced, str):
        return x
    deep = memo is not None
    func, args, state, listitems, dictitems = (*reduced, None, None, None)[:5]
    made = func(*[deepcopy_object(arg, memo) for arg in args]) if deep else func(*args)
    if deep:
        memo[_copies].append((x, made))
    if state is not None:
        if deep:
            state = deepcopy_object(state, memo)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        else:
            slots = None
            if isinstance(state, tuple) and len(state) == 2:
                state, slots = state
            if state is not None:
                made.__dict__.update(state)
            if slots is not None:
                for key, value in slots.items():
                    setattr(made, key, value)
    if listitems is not None:
        for item in listitems:
            made.append(deepcopy_object(item, memo) if deep else item)
    if dictitems is not None:
        for key, value in dictitems:
            if deep:
                key, value = deepcopy_object(key, memo), deepcopy_object(value, memo)
            made[key] = value
    return made


def reduce_object(self, protocol, /):
    """object.__reduce_ex__"""
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
        raise TypeError(f"cannot pickle {cls.__name__} objects")
    state = getattr(self, "__dict__", None) or None
    names = _slot_names(cls)
    if required:
        places = (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0) + len(names)
        if cls.__basicsize__ > object.__basicsize__ + tuple.__itemsize__ * places:
            raise TypeError(f"cannot pickle '{cls.__name__}' object")
    slots = {}
    for name in names:
        value = getattr(self, name, _missing)
        if value is not _missing:
            slots[name] = value
    return (state, slots) if slots else state
