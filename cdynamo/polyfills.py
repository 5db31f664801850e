"""Library functions written in C, as Python that the interpreter traces. Nothing here is ever called by the user's program."""

from __future__ import annotations

import inspect
import logging
import operator
import sys

import torch

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
