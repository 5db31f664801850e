"""Library functions written in C, as Python that the interpreter traces. Nothing here is ever called by the user's program."""

from __future__ import annotations

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


def groupby(iterable, key=None):
    groups = []
    for item in iterable:
        k = item if key is None else key(item)
        if groups and groups[-1][0] == k:
            groups[-1][1].append(item)
        else:
            groups.append((k, [item]))
    return iter([(k, iter(items)) for k, items in groups])


def tee(iterable, n=2, /):
    items = list(iterable)
    return tuple(iter(items) for _ in range(n))


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
