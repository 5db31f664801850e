"""Library functions written in C, as Python that the interpreter traces. Nothing here is ever called by the user's program."""

from __future__ import annotations

import logging
import operator
import sys

from cdynamo._library import (  # noqa: F401
    bisect_left, bisect_right, call, copy_object, countOf, deepcopy_object, heapify, heapify_max, heappop, heappop_max, heappush, heappushpop,
    heapreplace, heapreplace_max, iconcat, indexOf, insort_left, insort_right, reduce_object,
)  # fmt: skip

_missing = object()


def reduce(function, iterable, initial=_missing, /):
    it = iter(iterable)
    if initial is _missing:
        value = next(it, _missing)
        if value is _missing:
            raise TypeError("reduce() of empty iterable with no initial value")
    else:
        value = initial
    for item in it:
        value = function(value, item)
    return value


class _Groups:
    """itertools.groupby: one pass over the data, each group read while it is the current one."""

    def __init__(self, iterable, key):
        self.data = iter(iterable)
        self.key = key
        self.target = self.current_key = self.current = _missing
        self.group = None

    def __iter__(self):
        return self

    def step(self):
        value = next(self.data)
        key = value if self.key is None else self.key(value)
        self.current = value
        self.current_key = key

    def __next__(self):
        self.group = None
        while self.current_key is _missing or (self.target is not _missing and _same(self.target, self.current_key)):
            self.step()
        self.target = self.current_key
        return self.current_key, _Group(self, self.target)


class _Group:
    """The members of the current group; nothing more once another one is."""

    def __init__(self, parent, target):
        self.parent = parent
        self.target = target
        parent.group = self

    def __iter__(self):
        return self

    def __next__(self):
        parent = self.parent
        if parent.group is not self:
            raise StopIteration
        if parent.current is _missing:
            parent.step()
        if not _same(self.target, parent.current_key):
            raise StopIteration
        value = parent.current
        parent.current = parent.current_key = _missing
        return value


def _same(a, b):
    return a is b or a == b


def groupby(iterable, key=None):
    return _Groups(iterable, key)


class _Branch:
    """One of itertools.tee's iterators: reads on where no branch has read yet."""

    def __init__(self, data, seen):
        self.data = data
        self.seen = seen
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.seen):
            self.seen.append(next(self.data))
        self.at += 1
        return self.seen[self.at - 1]


def tee(iterable, n=2, /):
    n = operator.index(n)
    if n < 0:
        raise ValueError("n must be >= 0")
    data, seen = iter(iterable), []
    return tuple(_Branch(data, seen) for _ in range(n))


class itemgetter:
    def __init__(self, /, *items):
        if not items:
            raise TypeError("itemgetter expected 1 argument, got 0")
        self.items = items

    def __call__(self, obj, /):
        return obj[self.items[0]] if len(self.items) == 1 else tuple(obj[i] for i in self.items)


class attrgetter:
    def __init__(self, /, *attrs):
        if not attrs:
            raise TypeError("attrgetter expected 1 argument, got 0")
        for attr in attrs:
            if not isinstance(attr, str):
                raise TypeError("attribute name must be a string")
        self.attrs = attrs

    def __call__(self, obj, /):
        found = [_dotted(obj, attr) for attr in self.attrs]
        return found[0] if len(found) == 1 else tuple(found)


def _dotted(obj, attr):
    for name in attr.split("."):
        obj = getattr(obj, name)
    return obj


class methodcaller:
    def __init__(self, name, /, *args, **kwargs):
        self.name = name
        self.args = args
        self.kwargs = kwargs

    def __call__(self, obj, /):
        return getattr(obj, self.name)(*self.args, **self.kwargs)


class _CompareKey:
    def __init__(self, compare, obj):
        self.compare = compare
        self.obj = obj

    def __lt__(self, other):
        return self.compare(self.obj, other.obj) < 0

    def __gt__(self, other):
        return self.compare(self.obj, other.obj) > 0

    def __eq__(self, other):
        return self.compare(self.obj, other.obj) == 0

    def __le__(self, other):
        return self.compare(self.obj, other.obj) <= 0

    def __ge__(self, other):
        return self.compare(self.obj, other.obj) >= 0


def cmp_to_key(mycmp):
    return lambda obj: _CompareKey(mycmp, obj)


def prod(iterable, /, *, start=1):
    for item in iterable:
        start = start * item
    return start


def count_elements(mapping, iterable, /):
    for item in iterable:
        mapping[item] = mapping.get(item, 0) + 1


def cached_property_get(self, instance, owner=None):
    if instance is None:
        return self
    if self.attrname is None:
        raise TypeError("Cannot use cached_property instance without calling __set_name__ on it.")
    cache = instance.__dict__
    value = cache.get(self.attrname, _missing)
    if value is _missing:
        value = self.func(instance)
        cache[self.attrname] = value
    return value


def _make_traceback():
    try:
        raise ValueError
    except ValueError as error:
        return error.__traceback__


some_traceback = _make_traceback()


# ---- what an instruction or builtin does around one call of a special method, as Python, so that a break in it goes on ----


def attribute_or_hook(read, arguments, hook, name):
    try:
        return read(*arguments)
    except AttributeError:
        pass
    return hook(name)


def attribute_or_default(read, arguments, default):
    try:
        return read(*arguments)
    except AttributeError:
        return default


def length(method):
    n = operator.index(method())
    if n < 0:
        raise ValueError("__len__() should return >= 0")
    return n


def truth(method):
    answer = method()
    if type(answer) is not bool:
        raise TypeError(f"__bool__ should return bool, returned {type(answer).__name__}")
    return answer


def iterator(method):
    it = method()
    if not hasattr(type(it), "__next__"):
        raise TypeError(f"iter() returned non-iterator of type '{type(it).__name__}'")
    return it


def next_or_default(method, default):
    try:
        return method()
    except StopIteration:
        return default


def text(method, name, arguments):
    answer = method(*arguments)
    if not isinstance(answer, str):
        if name == "__format__":
            raise TypeError(f"__format__ must return a str, not {type(answer).__name__}")
        raise TypeError(f"{name} returned non-string (type {type(answer).__name__})")
    return answer


def reflected(method, left, right, symbol):
    answer = method(left)
    if answer is NotImplemented:
        raise TypeError(f"unsupported operand type(s) for {symbol}: '{type(left).__name__}' and '{type(right).__name__}'")
    return answer


def in_place(method, left, right, operator):
    answer = method(right)
    return operator(left, right) if answer is NotImplemented else answer


def compared(method, left, right, symbol, swapped):
    answer = method(right)
    if answer is not NotImplemented:
        return answer
    answer = getattr(type(right), swapped)(right, left)
    if answer is not NotImplemented:
        return answer
    if symbol == "==":
        return left is right
    if symbol == "!=":
        return left is not right
    raise TypeError(f"'{symbol}' not supported between instances of '{type(left).__name__}' and '{type(right).__name__}'")


def is_enabled_for(self, level):
    """logging.Logger.isEnabledFor, without its cache: the levels themselves are looked at."""
    return not self.disabled and self.manager.disable < level and level >= self.getEffectiveLevel()


def writes_text(stream):
    """Answered by the interpreter: whether writing to the stream runs nothing but C code of module io."""
    raise NotImplementedError


def logs_plainly(logger):
    """Whether only code of module logging runs when the logger logs, and what it writes goes to plain streams."""
    if logger.filters or logging._logRecordFactory is not logging.LogRecord:
        return False
    found = False
    while logger is not None:
        for handler in logger.handlers:
            found = True
            if not _handles_plainly(handler):
                return False
        if not logger.propagate:
            break
        logger = logger.parent
    return found or (logging.lastResort is not None and _handles_plainly(logging.lastResort))


def _handles_plainly(handler):
    kind = type(handler)
    if kind is logging.NullHandler:
        return True
    if handler.filters or (handler.formatter is not None and type(handler.formatter) is not logging.Formatter):
        return False
    if kind is logging._StderrHandler:
        return writes_text(sys.stderr)
    return (kind is logging.StreamHandler or kind is logging.FileHandler) and writes_text(handler.stream)
