"""Library functions written in C, as Python that the interpreter traces. Nothing here is ever called by the user's program."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import itertools
import logging
import operator
import sys
import types

from cdynamo._consumers import (  # noqa: F401
    added_in_place,
    all_of,
    any_of,
    bytes_of,
    chosen_by,
    dict_of,
    extended,
    first_items,
    hinted_items,
    items_of,
    joined,
    length,
    set_of,
    sorted_by,
    sum_of,
    updated,
    with_hinted_items,
    with_items,
)
from cdynamo._library import (  # noqa: F401
    _missing,
    ascii,
    bisect_left,
    bisect_right,
    call,
    countOf,
    default_dict_reduce,
    deque_reduce,
    exception_reduce,
    formatter_field_name_split,
    formatter_parser,
    fspath,
    get_logger,
    heapify,
    heapify_max,
    heappop,
    heappop_max,
    heappush,
    heappushpop,
    heapreplace,
    heapreplace_max,
    indexOf,
    insort_left,
    insort_right,
    length_hint,
    make_nmtuple,
    namespace_eq,
    namespace_ne,
    namespace_reduce,
    namespace_repr,
    object_getstate,
    object_reduce_ex,
    ordered_dict_copy,
    ordered_dict_reduce,
    set_reduce,
    slice_reduce,
    unwrap,
)
from cdynamo._own_builtins import __builtins__  # type: ignore[attr-defined,no-redef] # noqa: F401
from cdynamo._stand_ins import (  # noqa: F401
    HASH,
    RLock,
    bytearray,
    bytearray_fromhex,
    lock,
    mappingproxy,
    openssl_md5,
    openssl_sha1,
    openssl_sha224,
    openssl_sha256,
    openssl_sha384,
    openssl_sha512,
    pattern_finditer,
    pattern_sub,
    pattern_subn,
)
from cdynamo._torch_library import (  # noqa: F401
    FunctionContext,
    PendingHandle,
    attribute_of_handle,
    check_with_text,
    device_constructors,
    device_enter,
    device_exit,
    disable_torch_function,
    disable_torch_function_subclass,
    function_apply,
    get_default_nowrap_functions,
    group_tensors_by_device_and_dtype,
    is_device_constructor,
    is_nowrap_function,
)


def reduce(function, iterable, initial=_missing, /):
    try:
        it = iter(iterable)
    except TypeError:
        it = None
    if it is None:
        raise TypeError("reduce() arg 2 must support iteration")
    if initial is _missing:
        value = next(it, _missing)
        if value is _missing:
            raise TypeError("reduce() of empty iterable with no initial value")
    else:
        value = initial
    while True:
        try:
            item = next(it)
        except StopIteration:
            return value
        value = function(value, item)


class _Groups:
    """itertools.groupby: one pass over the data, each group read while it is the current one."""

    stands_for = itertools.groupby

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

    stands_for = itertools._grouper  # type: ignore[attr-defined]

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

    stands_for = itertools._tee  # type: ignore[attr-defined]

    def __init__(self, data, seen, readers):
        self.data = data
        self.seen = seen
        self.readers = readers
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.at == len(self.seen):
            if self.readers:
                raise RuntimeError("cannot re-enter the tee iterator")
            self.readers.append(self)
            try:
                self.seen.append(next(self.data))
            finally:
                self.readers.pop()
        self.at += 1
        return self.seen[self.at - 1]

    def __copy__(self):
        other = _Branch(self.data, self.seen, self.readers)
        other.at = self.at
        return other


def tee(iterable, n=2, /):
    n = operator.index(n)
    if n < 0:
        raise ValueError("n must be >= 0")
    data, seen, readers = iter(iterable), [], []
    return tuple(_Branch(data, seen, readers) for _ in range(n))


class itemgetter:
    stands_for = operator.itemgetter

    def __init__(self, /, *items):
        if not items:
            raise TypeError("itemgetter expected 1 argument, got 0")
        self.items = items

    def __call__(self, obj, /):
        return obj[self.items[0]] if len(self.items) == 1 else tuple(obj[i] for i in self.items)

    def __repr__(self):
        return f"operator.itemgetter({', '.join(map(repr, self.items))})"


class attrgetter:
    stands_for = operator.attrgetter

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

    def __repr__(self):
        return f"operator.attrgetter({', '.join(map(repr, self.attrs))})"


def _dotted(obj, attr):
    for name in attr.split("."):
        obj = getattr(obj, name)
    return obj


class methodcaller:
    stands_for = operator.methodcaller

    def __init__(self, name, /, *args, **kwargs):
        if not isinstance(name, str):
            raise TypeError("method name must be a string")
        self.name = name
        self.args = args
        self.kwargs = kwargs

    def __call__(self, obj, /):
        return getattr(obj, self.name)(*self.args, **self.kwargs)

    def __repr__(self):
        given = [self.name, *self.args]
        return f"operator.methodcaller({', '.join([*map(repr, given), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


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


# ---- groups of exceptions ----


def copy_traceback(source, target):
    """Answered by the interpreter, which looks at no attribute."""
    target.__traceback__ = source.__traceback__


def same_traceback(one, other):
    """Answered by the interpreter, which looks at no attribute."""
    return one.__traceback__ is other.__traceback__


def group_derive(self, excs, /):
    return BaseExceptionGroup(self.message, excs)


def group_str(self, /):
    n = len(self.exceptions)
    return f"{self.message} ({n} sub-exception{'' if n == 1 else 's'})"


def _part_of(group, excs):
    if not excs:
        return None
    part = group.derive(excs)
    if not isinstance(part, BaseExceptionGroup):
        raise TypeError("derive must return an instance of BaseExceptionGroup")
    copy_traceback(group, part)
    part.__context__ = group.__context__
    part.__cause__ = group.__cause__
    notes = getattr(group, "__notes__", None)
    if isinstance(notes, (list, tuple)):
        part.__notes__ = list(notes)
    return part


def _split(exc, matches):
    if matches(exc):
        return exc, None
    if not isinstance(exc, BaseExceptionGroup):
        return None, exc
    inside, outside = [], []
    for member in exc.exceptions:
        match, rest = _split(member, matches)
        if match is not None:
            inside.append(match)
        if rest is not None:
            outside.append(rest)
    return _part_of(exc, inside), _part_of(exc, outside)


def _matcher(condition):
    if isinstance(condition, type) and issubclass(condition, BaseException):
        return lambda exc: isinstance(exc, condition)
    if isinstance(condition, tuple):
        for item in condition:
            if not (isinstance(item, type) and issubclass(item, BaseException)):
                break
        else:
            return lambda exc: isinstance(exc, condition)
    elif callable(condition) and not isinstance(condition, type):
        return condition
    raise TypeError("expected a function, exception type or tuple of exception types")


def group_split(self, condition, /):
    return _split(self, _matcher(condition))


def group_subgroup(self, condition, /):
    return _split(self, _matcher(condition))[0]


def match_group(exc, types):
    """CHECK_EG_MATCH: what is left of the exception, and what an except* clause takes of it."""
    for one in types if isinstance(types, tuple) else (types,):
        if issubclass(one, BaseExceptionGroup):
            raise TypeError("catching ExceptionGroup with except* is not allowed. Use except instead.")
    if exc is None:
        return None, None
    if isinstance(exc, types):
        return None, exc if isinstance(exc, BaseExceptionGroup) else BaseExceptionGroup("", (exc,))
    if isinstance(exc, BaseExceptionGroup):
        match, rest = exc.split(types)
        return rest, match
    return exc, None


def _leaves(exc, found):
    if isinstance(exc, BaseExceptionGroup):
        for member in exc.exceptions:
            _leaves(member, found)
    else:
        found.append(exc)


def rest_of_group(original, excs):
    """PREP_RERAISE_STAR: what leaves a try statement with except* clauses; None: nothing."""
    if not excs:
        return None
    if not isinstance(original, BaseExceptionGroup):
        return excs[0]
    raised, kept = [], []
    for exc in excs:
        if exc is None:
            continue
        same = exc.__cause__ is original.__cause__ and exc.__context__ is original.__context__ and same_traceback(exc, original)
        if same:
            _leaves(exc, kept)
        else:
            raised.append(exc)

    def is_kept(exc):
        return any(other is exc for other in kept)

    again = _split(original, is_kept)[0]
    if not raised:
        return again
    if again is not None:
        raised.append(again)
    return BaseExceptionGroup("", raised) if len(raised) > 1 else raised[0]


# ---- async generators ----


def async_generator_resume(generator, sent, thrown):
    """Answered by the interpreter: (True, item) where it yields, (False, item) where it waits, None where it has ended."""
    raise NotImplementedError


@types.coroutine
def drive_async_generator(generator, sent, thrown):
    """What the methods of an async generator give to be awaited: its value is the next item."""
    while True:
        step = async_generator_resume(generator, sent, thrown)
        if step is None:
            raise StopAsyncIteration
        yielded, item = step
        if yielded:
            return item
        sent = thrown = None
        try:
            sent = yield item
        except BaseException as error:
            thrown = error


def async_generator_next(self, /):
    return drive_async_generator(self, None, None)


def async_generator_send(self, value, /):
    return drive_async_generator(self, value, None)


def async_generator_throw(self, kind, value=None, traceback=None, /):
    thrown = kind if value is None else value
    if isinstance(thrown, type):
        thrown = thrown()
    elif not isinstance(thrown, BaseException):
        thrown = kind(*thrown) if isinstance(thrown, tuple) else kind(thrown)
    return drive_async_generator(self, None, thrown)


@types.coroutine
def async_generator_close(self, /):
    try:
        yield from drive_async_generator(self, None, GeneratorExit())
    except (StopAsyncIteration, GeneratorExit):
        return
    raise RuntimeError("async generator ignored GeneratorExit")


def aiter(iterable, /):
    method = getattr(type(iterable), "__aiter__", None)
    if method is None:
        raise TypeError(f"'{type(iterable).__name__}' object is not an async iterable")
    it = method(iterable)
    if not hasattr(type(it), "__anext__"):
        raise TypeError(f"aiter() returned not an async iterator of type '{type(it).__name__}'")
    return it


def anext(it, /):
    if not hasattr(type(it), "__anext__"):
        raise TypeError(f"'{type(it).__name__}' object is not an async iterator")
    return type(it).__anext__(it)


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


def next_item_or_default(iterator, default):
    try:
        return next(iterator)
    except StopIteration:
        return default


def call_for_effect(function, arguments):
    function(*arguments)


def call_or_default(function, arguments, default):
    try:
        return function(*arguments)
    except StopIteration:
        return default


def next_of_zip(iterators):
    row = []
    for it in iterators:
        row.append(next(it))
    return tuple(row)


def next_of_strict_zip(iterators):
    row = []
    for it in iterators:
        item = next(it, _missing)
        if item is _missing:
            break
        row.append(item)
    n = len(row)
    if n == len(iterators):
        return tuple(row)
    if n > 0:
        raise ValueError(f"zip() argument {n + 1} is shorter than argument{' 1' if n == 1 else f's 1-{n}'}")
    for k in range(1, len(iterators)):
        if next(iterators[k], _missing) is not _missing:
            raise ValueError(f"zip() argument {k + 1} is longer than argument{' 1' if k == 1 else f's 1-{k}'}")
    raise StopIteration


def next_of_map(function, iterators):
    row = []
    for it in iterators:
        row.append(next(it))
    return function(*row)


def next_of_starmap(function, iterator):
    return function(*next(iterator))


def next_of_filter(function, iterator, inverted):
    while True:
        item = next(iterator)
        if bool(function(item)) is not inverted:
            return item


def next_of_enumerate(number, iterator):
    return number, next(iterator)


def named_attribute(read, args, obj, name):
    """getattr(obj, name): an AttributeError says which attribute it is about."""
    try:
        return read(*args)
    except AttributeError as error:
        if error.name is None and error.obj is None:
            error.name, error.obj = name, obj
        raise


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
    if swapped is not None:
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


# ---- str.format ------------------------------------------------------------------------------------------------------


def format_fields(pattern):
    """Run by the interpreter: a format string as nested tuples (text, first, rest, conversion, specification) with numbered fields."""
    count = 0

    def parse(text, depth):
        nonlocal count
        if depth > 2:
            raise ValueError("Max string recursion exceeded")
        rows = []
        for literal, field, spec, conversion in _string.formatter_parser(text):
            first, rest = None, ()
            if field is not None:
                first, parts = _string.formatter_field_name_split(field)
                rest = tuple(parts)
                if first == "":
                    if count is None:
                        raise ValueError("cannot switch from manual field specification to automatic field numbering")
                    first, count = count, count + 1
                elif isinstance(first, int):
                    if count:
                        raise ValueError("cannot switch from automatic field numbering to manual field specification")
                    count = None
            rows.append((literal, first, rest, conversion, parse(spec, depth + 1) if spec else ()))
        return tuple(rows)

    return parse(pattern, 1)


def format_text(fields, args, kwargs):
    text = ""
    for literal, first, rest, conversion, spec in fields:
        text += literal
        if first is None:
            continue
        if isinstance(first, int):
            if first >= len(args):
                raise IndexError(f"Replacement index {first} out of range for positional args tuple")
            value = args[first]
        else:
            value = kwargs[first]
        for is_attribute, name in rest:
            value = getattr(value, name) if is_attribute else value[name]
        if conversion == "r":
            value = repr(value)
        elif conversion == "s":
            value = str(value)
        elif conversion == "a":
            value = ascii(value)
        text += format(value, format_text(spec, args, kwargs) if spec else "")
    return text


class QuietBase:
    """Stands above a class that is made whose __init_subclass__ was traced."""

    def __init_subclass__(cls, **keywords):
        pass
