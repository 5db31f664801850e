"""Library functions written in C, as Python that the interpreter traces. Nothing here is ever called by the user's program."""

from __future__ import annotations

import logging
import sys

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


def accumulate(iterable, func=None, *, initial=None):
    it = iter(iterable)
    total = initial
    if initial is None:
        total = next(it, _missing)
        if total is _missing:
            return
    yield total
    for item in it:
        total = total + item if func is None else func(total, item)
        yield total


def product(*iterables, repeat=1):
    pools = [tuple(pool) for pool in iterables] * repeat
    result = [()]
    for pool in pools:
        result = [(*prefix, item) for prefix in result for item in pool]
    return iter(result)


def zip_longest(*iterables, fillvalue=None):
    iterators = [iter(it) for it in iterables]
    active = [True] * len(iterators)
    while True:
        row = []
        for i, it in enumerate(iterators):
            value = fillvalue
            if active[i]:
                value = next(it, _missing)
                if value is _missing:
                    active[i] = False
                    value = fillvalue
            row.append(value)
        if not any(active):
            return
        yield tuple(row)


def starmap(function, iterable, /):
    for args in iterable:
        yield function(*args)


def takewhile(predicate, iterable, /):
    for item in iterable:
        if not predicate(item):
            return
        yield item


def dropwhile(predicate, iterable, /):
    it = iter(iterable)
    for item in it:
        if not predicate(item):
            yield item
            break
    for item in it:
        yield item


def compress(data, selectors):
    for item, keep in zip(data, selectors):
        if keep:
            yield item


def pairwise(iterable, /):
    it = iter(iterable)
    previous = next(it, _missing)
    if previous is _missing:
        return
    for item in it:
        yield previous, item
        previous = item


def permutations(iterable, r=None):
    pool = tuple(iterable)
    n = len(pool)
    r = n if r is None else r
    for indices in product(range(n), repeat=r):
        if len(set(indices)) == r:
            yield tuple(pool[i] for i in indices)


def combinations(iterable, r):
    pool = tuple(iterable)
    for indices in product(range(len(pool)), repeat=r):
        if all(a < b for a, b in pairwise(indices)):
            yield tuple(pool[i] for i in indices)


def cycle(iterable, /):
    saved = []
    for item in iterable:
        yield item
        saved.append(item)
    while saved:
        for item in saved:
            yield item


def chain_from_iterable(cls, iterable, /):
    for inner in iterable:
        yield from inner


class _Groups:
    """itertools.groupby: one pass over the data, each group read while it is the current one."""

    def __init__(self, iterable, key):
        self.data = iter(iterable)
        self.key = key
        self.target = self.current_key = self.current = _missing
        self.group = None

    def __iter__(self):
        return self

    def advance(self):
        self.current = next(self.data)
        self.current_key = self.current if self.key is None else self.key(self.current)

    def __next__(self):
        self.group = object()
        while self.current_key is _missing or (self.target is not _missing and self.target == self.current_key):
            self.advance()
        self.target = self.current_key
        return self.current_key, self.members(self.target, self.group)

    def members(self, target, group):
        while self.group is group and target == self.current_key:
            yield self.current
            try:
                self.advance()
            except StopIteration:
                return


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
    data, seen = iter(iterable), []
    return tuple(_Branch(data, seen) for _ in range(n))


class itemgetter:
    def __init__(self, item, /, *items):
        self.items = (item, *items)

    def __call__(self, obj, /):
        return obj[self.items[0]] if len(self.items) == 1 else tuple(obj[i] for i in self.items)


class attrgetter:
    def __init__(self, attr, /, *attrs):
        self.attrs = (attr, *attrs)

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
