"""Library functions written in C, as Python that the interpreter traces. Nothing here is ever called by the user's program."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import copyreg
import inspect
import logging
import operator
import sys
import types

import torch

from cdynamo._library import (  # noqa: F401
    bisect_left,
    bisect_right,
    call,
    copy_object,
    countOf,
    deepcopy_object,
    heapify,
    heapify_max,
    heappop,
    heappop_max,
    heappush,
    heappushpop,
    heapreplace,
    heapreplace_max,
    iconcat,
    indexOf,
    insort_left,
    insort_right,
    reduce_object,
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


def tee(iterable, n=2, /):
    n = operator.index(n)
    if n < 0:
        raise ValueError("n must be >= 0")
    data, seen, readers = iter(iterable), [], []
    return tuple(_Branch(data, seen, readers) for _ in range(n))


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


def _suspended_frame():
    yield sys._getframe()


# Of a frame that has no caller: a traceback of one that ran would keep all who were on the stack when this module was loaded.
_suspended = _suspended_frame()
some_traceback = types.TracebackType(None, next(_suspended), 0, 1)


# ---- groups of exceptions ----


def copy_traceback(source, target):
    """Answered by the interpreter: target gets the traceback of source."""
    raise NotImplementedError


def same_traceback(one, other):
    """Answered by the interpreter."""
    raise NotImplementedError


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
def _drive(generator, sent, thrown):
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
    return _drive(self, None, None)


def async_generator_send(self, value, /):
    return _drive(self, value, None)


def async_generator_throw(self, kind, value=None, traceback=None, /):
    thrown = kind if value is None else value
    if isinstance(thrown, type):
        thrown = thrown()
    elif not isinstance(thrown, BaseException):
        thrown = kind(*thrown) if isinstance(thrown, tuple) else kind(thrown)
    return _drive(self, None, thrown)


@types.coroutine
def async_generator_close(self, /):
    try:
        yield from _drive(self, None, GeneratorExit())
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


def anext(it, /, *default):
    if not hasattr(type(it), "__anext__"):
        raise TypeError(f"'{type(it).__name__}' object is not an async iterator")
    awaitable = type(it).__anext__(it)
    return _next_or_default(awaitable, default[0]) if default else awaitable


async def _next_or_default(awaitable, default):
    try:
        return await awaitable
    except StopAsyncIteration:
        return default


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


def items(iterable):
    made = []
    for item in iterable:
        made.append(item)
    return made


def first_items(iterable, most):
    made = []
    for item in iterable:
        made.append(item)
        if len(made) == most:
            break
    return made


def with_items(function, before, iterable, rest, named):
    made = []
    for item in iterable:
        made.append(item)
    return function(*before, made, *rest, **named)


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


def greatest_by(iterable, key, default):
    best = best_key = _missing
    for item in iterable:
        item_key = key(item)
        if best is _missing or item_key > best_key:
            best, best_key = item, item_key
    if best is not _missing:
        return best
    if default is _missing:
        raise ValueError("max() arg is an empty sequence" if sys.version_info < (3, 12) else "max() iterable argument is empty")
    return default


def least_by(iterable, key, default):
    best = best_key = _missing
    for item in iterable:
        item_key = key(item)
        if best is _missing or item_key < best_key:
            best, best_key = item, item_key
    if best is not _missing:
        return best
    if default is _missing:
        raise ValueError("min() arg is an empty sequence" if sys.version_info < (3, 12) else "min() iterable argument is empty")
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


# ---- torch.autograd ----


def function_apply(cls, *args, **kwargs):
    """torch.autograd.Function.apply outside of torch.func's transforms."""
    if cls.setup_context is not torch.autograd.function._SingleLevelFunction.setup_context:
        args, kwargs = _with_defaults(cls.forward, args, kwargs)
    return super(torch.autograd.Function, cls).apply(*args, **kwargs)


def _with_defaults(function, args, kwargs):
    code = getattr(function, "__code__", None)
    if code is not None and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) and not code.co_kwonlyargcount:
        names = code.co_varnames[code.co_posonlyargcount : code.co_argcount]
        defaults = function.__defaults__ or ()
        values, given = list(args), dict(kwargs)
        for i in range(len(args), code.co_argcount):
            name = code.co_varnames[i]
            if name in names and name in given:
                values.append(given.pop(name))
            elif i >= code.co_argcount - len(defaults):
                values.append(defaults[i - code.co_argcount])
            else:
                break
        if not given and len(values) == code.co_argcount:
            return values, {}
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


class FunctionContext(torch.autograd.function.FunctionCtx):
    """The ctx of a torch.autograd.Function whose forward and backward are traced."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.materialize_grads = True

    @property
    def saved_tensors(self):
        return self.to_save


class PendingHandle:
    """The handle of a hook that is registered after the graph: what is asked of it is asked of the real one, after a break."""

    def __getattr__(self, name):
        return attribute_of_handle(self, name)

    def __setattr__(self, name, value):
        return attribute_of_handle(self, "__setattr__")(name, value)

    def __enter__(self):
        return attribute_of_handle(self, "__enter__")()

    def __exit__(self, kind, value, traceback):
        return attribute_of_handle(self, "__exit__")(kind, value, traceback)


def attribute_of_handle(handle, name):
    """Not traced: the interpreter breaks here, and the handle is the real one then."""
    return getattr(handle, name)


# ---- what graphs call --------------------------------------------------------------------------------------------------


def check_with_text(name, condition, text):
    """torch._check or one of its like, with a message that was known when the graph was captured."""
    getattr(torch, name)(condition, lambda: text)


# ---- copying and pickling --------------------------------------------------------------------------------------------


def object_reduce_ex(self, protocol, /):
    cls = type(self)
    if cls.__reduce__ is not object.__reduce__:
        return self.__reduce__()
    if protocol < 2:
        return copyreg._reduce_ex(self, protocol)
    args, kwargs = (), {}
    if hasattr(self, "__getnewargs_ex__"):
        args, kwargs = self.__getnewargs_ex__()
    elif hasattr(self, "__getnewargs__"):
        args = self.__getnewargs__()
    state = self.__getstate__()
    listitems = iter(self) if isinstance(self, list) else None
    dictitems = iter(self.items()) if isinstance(self, dict) else None
    if kwargs:
        return copyreg.__newobj_ex__, (cls, args, kwargs), state, listitems, dictitems
    return copyreg.__newobj__, (cls, *args), state, listitems, dictitems


def _slot_names(cls):
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
    state = getattr(self, "__dict__", None) or None
    slots = {}
    for name in _slot_names(type(self)):
        value = getattr(self, name, _missing)
        if value is not _missing:
            slots[name] = value
    return (state, slots) if slots else state


def exception_reduce(self, /):
    return (type(self), self.args, self.__dict__) if self.__dict__ else (type(self), self.args)


# ---- torch functions ---------------------------------------------------------------------------------------------------


class _TorchFunctionState:
    def __init__(self, state):
        self.state = state

    def __enter__(self):
        self.before = torch._C._get_torch_function_state()
        if self.before != torch._C._TorchFunctionState.ALL_DISABLED:
            torch._C._set_torch_function_state(self.state)

    def __exit__(self, kind, value, traceback):
        torch._C._set_torch_function_state(self.before)


class _Listed:
    """A set of functions that is only asked whether it has one."""

    def __init__(self, has):
        self.has = has

    def __contains__(self, function):
        return self.has(function)


# Both are answered by the interpreter, and run where a capture breaks here.
def is_nowrap_function(function):
    return function in torch.overrides.get_default_nowrap_functions()


def is_device_constructor(function):
    return function in torch.utils._device._device_constructors()


def get_default_nowrap_functions():
    return _Listed(is_nowrap_function)


def device_constructors():
    return _Listed(is_device_constructor)


def disable_torch_function_subclass():
    return _TorchFunctionState(torch._C._TorchFunctionState.SUBCLASSES_DISABLED)


def disable_torch_function():
    return _TorchFunctionState(torch._C._TorchFunctionState.ALL_DISABLED)


def group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """torch._C._group_tensors_by_device_and_dtype."""
    groups = {}
    for i, first in enumerate(tensorlistlist[0]):
        key = (first.device, first.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, indices = groups[key]
        for tensors, grouped in zip(tensorlistlist, lists):
            if tensors:
                grouped.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups
