"""Builtins that take the items of an iterable which runs code of the program, one by one as CPython does. Traced, as polyfills.py is."""

from __future__ import annotations

import operator
import sys

from cdynamo._library import _missing
from cdynamo._own_builtins import __builtins__  # type: ignore[attr-defined,no-redef] # noqa: F401


def items_of(iterable):
    made = []
    for item in iterable:
        made.append(item)
    return made


def rest_of(iterator):
    """Without its __iter__, which was called."""
    made = []
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return made
        made.append(item)


def length(method):
    n = operator.index(method())
    if n < 0:
        raise ValueError("__len__() should return >= 0")
    if n > sys.maxsize:
        raise OverflowError("cannot fit 'int' into an index-sized integer")
    return n


def _ask_length(count, hint):
    if count is not None:
        try:
            length(count)
            return
        except TypeError:
            pass
    if hint is None:
        return
    try:
        answer = hint()
    except TypeError:
        return
    if answer is NotImplemented:
        return
    if not isinstance(answer, int):
        raise TypeError(f"__length_hint__ must be an integer, not {type(answer).__name__}")
    if answer < 0:
        raise ValueError("__length_hint__() should return >= 0")


def hinted_items(iterable, count, hint):
    """The same of an object with a __len__ or __length_hint__ of its own, which lists and tuples ask for."""
    iterator = iter(iterable)
    _ask_length(count, hint)
    return rest_of(iterator)


def first_items(iterable, most):
    made = []
    for item in iterable:
        made.append(item)
        if len(made) == most:
            break
    return made


def with_items(function, before, iterable, rest, named):
    """A call whose function takes all items before it looks at the first."""
    return function(*before, items_of(iterable), *rest, **named)


def with_hinted_items(function, before, iterable, rest, named, count, hint):
    return function(*before, hinted_items(iterable, count, hint), *rest, **named)


def any_of(iterable):
    for item in iterable:  # noqa: SIM110
        if item:
            return True
    return False


def all_of(iterable):
    for item in iterable:  # noqa: SIM110
        if not item:
            return False
    return True


def sorted_by(iterable, key, reverse):
    made = list(iterable)
    keys = []
    for item in made:
        keys.append(key(item))
    return [made[i] for i in sorted(range(len(made)), key=keys.__getitem__, reverse=reverse)]


def chosen_by(iterable, key, default, before, choose):
    """choose is max or min; key: a function or None; before: operator.gt or operator.lt."""
    best = best_key = _missing
    for item in iterable:
        item_key = item if key is None else key(item)
        if best is _missing or before(item_key, best_key):
            best, best_key = item, item_key
    if best is not _missing:
        return best
    return choose(()) if default is _missing else default  # which raises in CPython's own words


def sum_of(iterable, start):
    if isinstance(start, (str, bytes, bytearray)):
        iter(iterable)
        return sum((), start)  # which raises in CPython's own words
    total, numbers = start, []  # int and float are added by CPython in its own way, as long as there is nothing else
    plain = type(start) is int or type(start) is float
    for item in iterable:
        if plain:
            kind = type(item)
            if kind is int or kind is float or kind is bool:
                numbers.append(item)
                continue
            plain, total = False, sum(numbers, total)
        total = total + item
    return sum(numbers, total) if plain else total


def set_of(iterable):
    made = set()
    for item in iterable:
        made.add(item)
    return made


def _iterator(iterable):
    try:
        return iter(iterable)
    except TypeError:
        return None


def joined(join, before, iterable):
    iterator = _iterator(iterable)
    if iterator is None:
        raise TypeError("can only join an iterable")
    return join(*before, items_of(iterator))


def bytes_of(iterable, count, hint):
    iterator = _iterator(iterable)
    if iterator is None:
        raise TypeError(f"cannot convert '{type(iterable).__name__}' object to bytes")
    _ask_length(count, hint)
    made = []
    for item in iterator:
        bytes((item,))  # which raises in CPython's own words
        made.append(item)
    return bytes(made)


def _sequence(item):
    if type(item) is tuple or type(item) is list:
        return item
    try:
        return list(item)
    except TypeError:
        return None


def dict_of(iterable, named):
    made = {}
    for number, item in enumerate(iterable):
        pair = _sequence(item)
        if pair is None:
            raise TypeError(f"cannot convert dictionary update sequence element #{number} to a sequence")
        if len(pair) != 2:
            raise ValueError(f"dictionary update sequence element #{number} has length {len(pair)}; 2 is required")
        made[pair[0]] = pair[1]
    made.update(named)
    return made


def extended(into, iterable, count, hint):
    """list.extend: a generator sees the list grow."""
    iterator = iter(iterable)
    _ask_length(count, hint)
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            return
        list.append(into, item)


def added_in_place(into, iterable, count, hint):
    extended(into, iterable, count, hint)
    return into


def updated(into, iterable, rest):
    for item in iterable:
        set.add(into, item)
    set.update(into, *rest)
