"""Objects of the library that C code makes, as classes that the interpreter traces (see polyfills.py).

The program sees the class `stands_for`. Where such an object leaves the captured code, `__made_by__(*__made_of__)` makes the real one.
"""

from __future__ import annotations

import _thread
import builtins
import collections.abc
import hashlib
import re
import types

from cdynamo._own_builtins import __builtins__  # type: ignore[attr-defined,no-redef] # noqa: F401


def native(function, /, *args, **kwargs):
    """Answered by the interpreter: the call, made by CPython where all arguments are constants. Breaks elsewhere."""
    return function(*args, **kwargs)


# ---- types.MappingProxyType ----------------------------------------------------------------------------------------------


def _shown(mapping):
    return getattr(mapping, "_mapping", mapping) if type(mapping) is types.MappingProxyType else mapping


class mappingproxy:
    stands_for = types.MappingProxyType
    __made_by__ = types.MappingProxyType
    __made_of__ = ("_mapping",)
    if types.MappingProxyType.__hash__ is None:
        __hash__ = None  # type: ignore[assignment]
    else:

        def __hash__(self):
            return hash(self._mapping)

    def __init__(self, mapping):
        if isinstance(mapping, (list, tuple)) or not hasattr(type(mapping), "__getitem__"):
            raise TypeError(f"mappingproxy() argument must be a mapping, not {type(mapping).__name__}")
        self._mapping = mapping

    def __getitem__(self, key):
        return self._mapping[key]

    def __contains__(self, key):
        return key in self._mapping

    def __len__(self):
        return len(self._mapping)

    def __iter__(self):
        return iter(self._mapping)

    def __reversed__(self):
        return reversed(self._mapping)

    def __eq__(self, other):
        return self._mapping == _shown(other)

    def __ne__(self, other):
        return self._mapping != _shown(other)

    def __lt__(self, other):
        return self._mapping < other

    def __le__(self, other):
        return self._mapping <= other

    def __gt__(self, other):
        return self._mapping > other

    def __ge__(self, other):
        return self._mapping >= other

    def __or__(self, other):
        return self._mapping | _shown(other)

    def __ror__(self, other):
        return _shown(other) | self._mapping

    def __ior__(self, other):
        raise TypeError(f"'|=' is not supported by {type(self).__name__}; use '|' instead")

    def __repr__(self):
        return f"mappingproxy({self._mapping!r})"

    def __str__(self):
        return str(self._mapping)

    def get(self, key, default=None, /):
        return self._mapping.get(key, default)

    def keys(self):
        return self._mapping.keys()

    def values(self):
        return self._mapping.values()

    def items(self):
        return self._mapping.items()

    def copy(self):
        return self._mapping.copy()


# ---- reversed() of a sequence written in Python -------------------------------------------------------------------------------


class reversed_sequence:
    stands_for = reversed

    def __init__(self, sequence):
        self._sequence = sequence
        self._at = len(sequence) - 1

    def __iter__(self):
        return self

    def __length_hint__(self):
        return 0 if self._sequence is None or len(self._sequence) <= self._at else self._at + 1

    def __next__(self):
        if self._sequence is None:
            raise StopIteration
        at, sequence = self._at, self._sequence
        self._at, self._sequence = -1, None
        if at >= 0:
            try:
                item = sequence[at]
            except (IndexError, StopIteration):
                pass
            else:
                self._at, self._sequence = at - 1, sequence
                return item
        raise StopIteration


# ---- bytearray: its bytes are a constant, changed by CPython's own methods --------------------------------------------------


def byte_values(*args, **kwargs):
    return bytes(builtins.bytearray(*args, **kwargs))


def bytes_changed(data, name, args, kwargs):
    """The bytes after a method of bytearray has changed them, and what it gave."""
    made = builtins.bytearray(data)
    given = getattr(made, name)(*args, **kwargs)
    return bytes(made), None if given is made else given


def bytes_shown(data, name, args, kwargs):
    """What a method of bytearray gives, with bytes for bytearrays."""
    given = getattr(builtins.bytearray(data), name)(*args, **kwargs)
    if type(given) is builtins.bytearray:
        return bytes(given)
    if type(given) in (list, tuple):
        return type(given)([bytes(part) if type(part) is builtins.bytearray else part for part in given])
    return given


def _plain(value):
    if type(value) is builtins.bytearray:
        return getattr(value, "_data", value)
    return type(value)([_plain(item) for item in value]) if type(value) in (list, tuple) else value


def _changing(name):
    def method(self, /, *args, **kwargs):
        self._data, given = native(bytes_changed, self._data, name, [_plain(v) for v in args], kwargs)
        return given

    method.__name__ = name
    return method


def _showing(name):
    def method(self, /, *args, **kwargs):
        return native(bytes_shown, self._data, name, [_plain(v) for v in args], kwargs)

    method.__name__ = name
    return method


def _making(name):
    def method(self, /, *args, **kwargs):
        given = native(bytes_shown, self._data, name, [_plain(v) for v in args], kwargs)
        return bytearray(given) if type(given) is bytes else given

    method.__name__ = name
    return method


def _splitting(name):
    def method(self, /, *args, **kwargs):
        given = native(bytes_shown, self._data, name, [_plain(v) for v in args], kwargs)
        return type(given)([bytearray(part) for part in given])

    method.__name__ = name
    return method


def byte_iterator(subject, at):
    made = iter(subject or builtins.bytearray())
    for _ in range(at):
        next(made)
    return made


class _ByteIterator:
    """Sees what is written to the array meanwhile; once at the end, always."""

    stands_for = type(iter(builtins.bytearray()))
    __made_by__ = byte_iterator
    __made_of__ = ("_subject", "_at")

    def __init__(self, subject):
        self._subject = subject
        self._at = 0

    def __iter__(self):
        return self

    def __length_hint__(self):
        return max(len(self._subject) - self._at, 0)

    def __next__(self):
        if self._at >= len(self._subject):
            self._subject, self._at = (), 0
            raise StopIteration
        self._at += 1
        return self._subject[self._at - 1]


class bytearray:
    stands_for = builtins.bytearray
    __made_by__ = builtins.bytearray
    __made_of__ = ("_data",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], collections.abc.Iterable) and not isinstance(args[0], (str, bytes)):
            made = []
            for item in args[0]:
                native(byte_values, [item])  # which raises where it is no byte
                made.append(item)
            args = (made,)
        self._data = native(byte_values, *args, **kwargs)

    def __bytes__(self):
        return self._data

    def __len__(self):
        return len(self._data)

    def __iter__(self):
        return _ByteIterator(self)

    def __contains__(self, item):
        return _plain(item) in self._data

    def __iadd__(self, other):
        self._data, _ = native(bytes_changed, self._data, "__iadd__", [_plain(other)], {})
        return self

    def __imul__(self, count):
        self._data, _ = native(bytes_changed, self._data, "__imul__", [count], {})
        return self

    def __radd__(self, other):
        return other + self._data

    def __reduce_ex__(self, protocol=0, /):
        if protocol < 3:
            return builtins.bytearray, (self._data.decode("latin-1"), "latin-1"), None
        return builtins.bytearray, (self._data,) if self._data else (), None


for _name in (
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "__setitem__", "__delitem__",
):  # fmt: skip
    setattr(bytearray, _name, _changing(_name))
for _name in (
    "count", "decode", "endswith", "find", "hex", "index", "isalnum", "isalpha", "isascii", "isdigit", "islower", "isspace", "istitle",
    "isupper", "rfind", "rindex", "startswith", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__repr__", "__str__",
):  # fmt: skip
    setattr(bytearray, _name, _showing(_name))
for _name in (
    "capitalize", "center", "copy", "expandtabs", "join", "ljust", "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rjust",
    "rstrip", "strip", "swapcase", "title", "translate", "upper", "zfill", "__add__", "__mul__", "__rmul__", "__mod__", "__getitem__",
):  # fmt: skip
    setattr(bytearray, _name, _making(_name))
for _name in ("partition", "rpartition", "rsplit", "split", "splitlines"):
    setattr(bytearray, _name, _splitting(_name))


def bytearray_fromhex(cls, text, /):
    return cls(bytes.fromhex(text))


# ---- locks ---------------------------------------------------------------------------------------------------------------


def make_lock(count):
    lock = _thread.allocate_lock()
    if count:
        lock.acquire()
    return lock


def make_recursive_lock(count):
    lock = _thread.RLock()
    for _ in range(count):
        lock.acquire()
    return lock


def _check_wait(lock, blocking, timeout):
    """What is refused, and numbers of other kinds, are CPython's."""
    known = isinstance(blocking, int) and isinstance(timeout, (int, float))
    if not known or (timeout != -1 and not (blocking and 0 <= timeout < 1e6)):
        native(_thread.allocate_lock, lock)


class lock:
    stands_for = _thread.LockType
    __made_by__ = make_lock
    __made_of__ = ("_count",)

    def __init__(self):
        self._count = 0

    def acquire(self, blocking=True, timeout=-1):
        _check_wait(self, blocking, timeout)
        if self._count:
            if blocking:
                native(_thread.allocate_lock, self)  # nobody else can ever release it: CPython is to wait
            return False
        self._count = 1
        return True

    def release(self):
        if not self._count:
            raise RuntimeError("release unlocked lock")
        self._count = 0

    def locked(self):
        return self._count > 0

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *error):
        self.release()


class RLock:
    stands_for = _thread.RLock
    __made_by__ = make_recursive_lock
    __made_of__ = ("_count",)

    def __init__(self):
        self._count = 0

    def acquire(self, blocking=True, timeout=-1):
        _check_wait(self, blocking, timeout)
        self._count += 1
        return True

    def release(self):
        if not self._count:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1

    def _is_owned(self):
        return self._count > 0

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *error):
        self.release()


# ---- hashlib -------------------------------------------------------------------------------------------------------------


def hash_made(name, data):
    made = hashlib.new(name)
    made.update(data)
    return made


def hash_shown(name, data, what, *args):
    return getattr(hash_made(name, data), what)(*args)


def hash_size(name, what):
    return getattr(hashlib.new(name), what)


class HASH:
    stands_for = type(hashlib.md5())
    __made_by__ = hash_made
    __made_of__ = ("name", "_data")

    def __init__(self, name, data):
        self.name = name
        self._data = b""
        self.update(data)

    def update(self, data, /):
        native(hash_shown, self.name, _plain(data), "digest")
        self._data += _plain(data)

    def digest(self):
        return native(hash_shown, self.name, self._data, "digest")

    def hexdigest(self):
        return native(hash_shown, self.name, self._data, "hexdigest")

    def copy(self):
        return HASH(self.name, self._data)

    @property
    def digest_size(self):
        return native(hash_size, self.name, "digest_size")

    @property
    def block_size(self):
        return native(hash_size, self.name, "block_size")


def openssl_md5(string=b"", *, usedforsecurity=True):
    return HASH("md5", string)


def openssl_sha1(string=b"", *, usedforsecurity=True):
    return HASH("sha1", string)


def openssl_sha224(string=b"", *, usedforsecurity=True):
    return HASH("sha224", string)


def openssl_sha256(string=b"", *, usedforsecurity=True):
    return HASH("sha256", string)


def openssl_sha384(string=b"", *, usedforsecurity=True):
    return HASH("sha384", string)


def openssl_sha512(string=b"", *, usedforsecurity=True):
    return HASH("sha512", string)


# ---- re ------------------------------------------------------------------------------------------------------------------


def all_matches(pattern, method, args, kwargs):
    return tuple(getattr(pattern, method)(*args, **kwargs))


def scanner_made(pattern, args, kwargs, count):
    made = pattern.scanner(*args, **kwargs)
    for _ in range(count):
        made.search()
    return made


class _Scanner:
    """pattern.scanner(...), of which finditer() calls search() until it gives None."""

    stands_for = type(re.compile("").scanner(""))  # type: ignore[attr-defined]
    __made_by__ = scanner_made
    __made_of__ = ("pattern", "_args", "_kwargs", "_at")

    def __init__(self, pattern, args, kwargs):
        self.pattern = pattern
        self._args = args
        self._kwargs = kwargs
        for part in (*args, *kwargs.values()):
            if isinstance(part, builtins.bytearray):
                native(all_matches, self)  # which it would keep from changing
        self._matches = native(all_matches, pattern, "finditer", args, kwargs)
        self._at = 0

    def search(self):
        self._at += 1
        return self._matches[self._at - 1] if self._at <= len(self._matches) else None


def pattern_finditer(self, /, *args, **kwargs):
    return iter(_Scanner(self, args, kwargs).search, None)


def pattern_call(pattern, method, args, kwargs):
    return getattr(pattern, method)(*args, **kwargs)


def _replaced(pattern, repl, string, count):
    parts, at, done = [], 0, 0
    for match in native(all_matches, pattern, "finditer", (string,), {}):
        if count and done >= count:
            break
        if at < match.start():
            parts.append(string[at : match.start()])
        text = repl(match)
        if text is not None:
            parts.append(text)
        at = match.end()
        done += 1
    if at < len(string):
        parts.append(string[at:])
    return string[:0].join(parts), done


def pattern_sub(self, /, repl, string, count=0):
    if callable(repl):
        return _replaced(self, repl, string, count)[0]
    return native(pattern_call, self, "sub", (repl, string, count), {})


def pattern_subn(self, /, repl, string, count=0):
    if callable(repl):
        return _replaced(self, repl, string, count)
    return native(pattern_call, self, "subn", (repl, string, count), {})


# Messages name the class that the program knows.
for _class in [held for held in list(globals().values()) if isinstance(held, type) and "stands_for" in vars(held)]:
    _shown_class = _class.stands_for  # type: ignore[attr-defined]
    _class.__name__ = _shown_class.__name__ if _shown_class.__module__ == "builtins" else f"{_shown_class.__module__}.{_shown_class.__name__}"
