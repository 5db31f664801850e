"""What more of CPython's own test modules found (test_datetime, test_decimal, test_codecs, test_unittest, test_inspect, test_email, ...)."""

import codecs
import datetime
import decimal
import importlib
import inspect
import io
import logging
import struct
import sys
import types
import typing

import torch
from differ import Cases, Setup, outcome, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario

# ---- imports -----------------------------------------------------------------------------------------------------------


def unloaded(name):
    """Each call finds the module not loaded."""
    sys.modules.pop(name, None)
    return t(3)


@case(lambda: (unloaded("sndhdr"),), skip="Import", graphs=2, captures=(2, 0))
def import_after_a_look(x):
    x = x + 1
    loaded = "sndhdr" in sys.modules
    import sndhdr

    return x * 2, loaded, sndhdr is sys.modules["sndhdr"]


@case(lambda: (unloaded("sndhdr"),), skip="Import", graphs=2, captures=(2, 0))
def import_of_what_the_program_unloaded(x):
    x = x + 1
    sys.modules["sndhdr"] = None
    del sys.modules["sndhdr"]
    module = importlib.import_module("sndhdr")
    return x * 2, module.__name__, "sndhdr" in sys.modules


@case(lambda: (unloaded("sndhdr"), {}), skip="Import", graphs=2, captures=(2, 1))
def import_after_a_write(x, log):
    x = x + 1
    log["n"] = log.get("n", 0) + 1
    import sndhdr

    return x * 2, sndhdr.__name__


@case(lambda: (t(3), {}))
def missing_module_after_a_write(x, log):
    log["n"] = x + 1
    try:
        import no_such_module_at_all
    except ImportError as error:
        return x * 2, error.name, error.args
    return no_such_module_at_all


@case(lambda: (t(3), []), skip="Import", graphs=2, captures=(2, 0))
def import_with_a_changed_path(x, log):
    x = x + 1
    sys.path.insert(0, "/nowhere")
    try:
        import no_such_module_at_all
    except ImportError as error:
        log.append(error.name)
    else:
        log.append(no_such_module_at_all)
    del sys.path[0]
    return x * 2


@scenario(skip="Import", graphs=2, captures=(2, 0))
def import_by_another_function():
    import builtins

    log = []
    plain = builtins.__import__

    def other(name, *rest):
        if name == "math":
            log.append(name)
        return plain(name, *rest)

    def f(x):
        x = x + 1
        import math

        return x * 2, math.pi

    def args():
        builtins.__import__ = other
        return (t(3),)

    def after(result):
        builtins.__import__ = plain

    return Setup(f, args, watch=lambda: log, after=after)


# ---- text --------------------------------------------------------------------------------------------------------------

OWN_CODECS: dict[str, codecs.CodecInfo] = {}
codecs.register(OWN_CODECS.get)


@case(lambda: (t(3),), skip="UnsupportedText", graphs=2, captures=(2, 0))
def codec_of_the_program(x):
    x = x + 1

    def convert(text, errors="strict"):
        return b"own" + text.encode("ascii"), len(text)

    OWN_CODECS["found8_codec"] = codecs.CodecInfo(convert, convert, name="found8_codec")
    return x * 2, "text".encode("found8_codec")


@case(lambda: (t(3),), skip="*")
def error_handler_of_the_program(x):
    codecs.register_error("found8_errors", lambda error: ("?", error.end))
    return x + 1, "aé".encode("ascii", "found8_errors"), "aé".encode("ascii", errors="replace"), bytes("é", "latin-1")


class Shown:
    def __get__(self, instance, owner=None):
        return lambda: "shown"


class Showing:
    __str__ = Shown()


@case(lambda: (t(3), Showing()))
def text_by_a_descriptor(x, held):
    return x + 1, str(held), f"{held}", str(Showing()), f"{Showing()!s:>7}"


@case(lambda: (t(3), decimal.Decimal("1.25"), [decimal.Decimal(3)]), skip="*")
def format_by_c_code(x, number, held):
    return x + 1, f"{number:.1f}", format(held[0], "6.2f"), outcome(lambda: f"{held:>3}")


# ---- numbers -----------------------------------------------------------------------------------------------------------


class Divided:
    def __divmod__(self, other):
        return NotImplemented

    def __rdivmod__(self, other):
        return "reflected", other


class DividedBelow(Divided):
    def __rdivmod__(self, other):
        return "below"


@case(lambda: (t(3), Divided(), DividedBelow()))
def rest_of_a_division(x, a, b):
    said = [outcome(lambda: divmod(p, q)) for p in (a, b, 7, "7") for q in (a, b, 2, None)]
    return x + 1, said


@case(lambda: (t(3), datetime.timedelta(5), [datetime.timedelta(2), decimal.Decimal(7)]), skip="*")
def rest_of_a_division_by_c_code(x, a, held):
    return x + 1, outcome(lambda: divmod(a, held[0])), outcome(lambda: divmod(held[1], 2)), outcome(lambda: divmod(2, held[1]))


@case(lambda: (t(3),), skip="*")
def flags_of_a_dead_context(x):
    context = decimal.Context()
    context.clear_flags()
    context.flags[decimal.Inexact] = True
    cdynamo.graph_break()
    return x + 1, context.flags[decimal.Inexact]


@case(lambda: (t(3), bytearray(4)), skip="*")
def buffer_that_is_packed_into(x, held):
    made = bytearray(4)
    x = x + 1
    struct.pack_into("hh", made, 0, 1, 2)
    struct.Struct("h").pack_into(held, 2, 7)
    return x, bytes(made), bytes(held), struct.unpack_from("h", made, 2)


# ---- exceptions --------------------------------------------------------------------------------------------------------


def made_of(cls, *args):
    try:
        error = cls(*args)
    except TypeError as refused:
        return refused.args
    return type(error), error.args, str(error)


@case(lambda: (t(3), [1]))
def class_of_an_os_error(x, held):
    return x + 1, [made_of(OSError, *args) for args in ((2, held), (17, 5, "file"), (held, held), (held,), (5, 6))]


@case(lambda: (t(3), [1], bytearray(b"abc")), skip="ObjectConstruction")
def arguments_of_unicode_errors(x, held, data):
    y = x + 1
    said = [
        made_of(UnicodeDecodeError, "ascii", data, 1, 2),
        made_of(UnicodeEncodeError, "a", "b", 1, 2, held),
        made_of(SyntaxError, "m", held),
        made_of(OSError, 2, held, "file"),
    ]
    return y, said, made_of(UnicodeDecodeError, "ascii", data, 1, 2, "odd")


# ---- logging -----------------------------------------------------------------------------------------------------------


@scenario(skip="Output", graphs=2, captures=(2, 0))
def handler_that_was_changed_before():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.Logger("found8")
    logger.addHandler(handler)

    def f(x):
        x = x + 1
        handler.setLevel(logging.ERROR)
        try:
            logger.warning("hidden")
        finally:
            handler.setLevel(logging.NOTSET)
        logger.warning("seen")
        return x * 2

    return Setup(f, lambda: (t(3),), watch=stream.getvalue)


# ---- tuples with methods -----------------------------------------------------------------------------------------------


class Counted(typing.NamedTuple):
    x: int
    y: int = 2

    def __len__(self):
        return 7

    def __getitem__(self, i):
        return "item", i

    def __iter__(self):
        return iter([9])

    def __contains__(self, item):
        return item == 77

    def __bool__(self):
        return False

    def __call__(self, item):
        return "called", item


class Hooked(tuple):
    def __getattribute__(self, name):
        if name in tuple.__dict__:
            raise AttributeError(name)
        return tuple.__getattribute__(self, name)

    def __getattr__(self, name):
        return "hooked " + name

    def __call__(self):
        return "called"


def shown_of(p):
    return len(p), p[0], p[1:], list(p), [*p], 77 in p, 1 in p, bool(p), p(4), callable(p), sorted(p), p.x, p.y, p._fields


@case(lambda: (t(3), Counted(1)))
def named_tuple_with_methods(x, held):
    return x + 1, shown_of(held), shown_of(Counted(3, 4))


@case(lambda: (t(3), Hooked((1, 2))))
def tuple_with_hooks(x, held):
    made = Hooked((3,))
    return x + 1, [(p.count, p.other, p(), callable(p), len(p), tuple(p)) for p in (held, made)]


class Settings(dict):
    def __getattribute__(self, name):
        return self[name] if name.startswith("n_") else super().__getattribute__(name)


@case(lambda: (t(3), Settings(n_layers=2, other=3)))
def dict_that_reads_its_keys_as_attributes(x, held):
    made = Settings(held, n_heads=5)
    return x * held.n_layers + made.n_heads, sorted(made.keys()), outcome(lambda: held.missing), outcome(lambda: held.n_missing)


# ---- attributes --------------------------------------------------------------------------------------------------------


class Slotted:
    __slots__ = ("held",)


class Borrowing:
    __slots__ = ("other",)
    held = Slotted.held


class Renamed(Slotted):
    __slots__ = ()
    alias = Slotted.held


class Wrapped(Slotted):
    __slots__ = ()

    @property
    def held(self):
        return "wrapped", super().held

    @held.setter
    def held(self, value):
        Slotted.held.__set__(self, value)


def slotted(cls, value):
    made = cls()
    made.held = value
    return made


@case(lambda: (t(3), Borrowing()))
def slot_of_another_class(x, held):
    def write(p):
        p.held = 1

    made = Borrowing()
    return x + 1, [outcome(lambda p=p: p.held) for p in (held, made)], [outcome(lambda p=p: write(p)) for p in (held, made)]


@case(lambda: (t(3), slotted(Renamed, 1)))
def slot_by_another_name(x, held):
    before = held.alias
    held.alias = x + 1
    made = Renamed()
    made.alias = 5
    return held.held, before, made.held, made.alias, outcome(lambda: delattr(made, "alias")), hasattr(made, "held")


@case(lambda: (t(3), slotted(Wrapped, 1)), skip="*")
def slot_behind_a_property(x, held):
    made = Wrapped()
    made.held = 3
    y = x + 1
    return y, made.held, held.held


@case(lambda: (t(3),), skip="*")
def signature_of_a_marked_function(x):
    def run(*args, **kwargs):
        pass

    run.__text_signature__ = "($self, a)"
    before = str(inspect.signature(run))
    run.__text_signature__ = "($self, b)"
    return x + 1, before, str(inspect.signature(run))


def plain_function(a, b=1):
    return a


@scenario(after_change=(1, 0))
def signature_that_is_set_later():
    function = types.FunctionType(plain_function.__code__, plain_function.__globals__, "again", (1,))

    def f(x):
        return x + 1, str(inspect.signature(function))

    def mark():
        function.__signature__ = inspect.signature(lambda q: q)

    def unmark():
        del function.__signature__

    return Setup(f, lambda: (t(3),), changes=(mark, unmark))


class Shadowed(type):
    @property
    def __mro__(cls):
        return (object,)

    @property
    def __dict__(cls):
        return None


class Base:
    held = 3


class Below(Base, metaclass=Shadowed):
    pass


@case(lambda: (t(3), Below()), skip="*")
def attribute_that_is_found_statically(x, made):
    return x + 1, inspect.getattr_static(made, "held"), inspect.getattr_static(Below, "held")


@case(lambda: (t(3),))
def text_of_a_type_that_is_made_anew(x):
    return x + 1, dict.__doc__ is dict.__doc__, dict.__doc__ == dict.__doc__, Base.__doc__ is Base.__doc__, int.__text_signature__


class Missing(dict):
    def __missing__(self, key):
        self[key] = made = (key, len(self))
        return made


class MissingBelow(Missing):
    def __getitem__(self, key):
        return "below", super().__getitem__(key)


@case(lambda: (t(3), Missing(a=1), MissingBelow()))
def missing_keys_by_the_method(x, held, below):
    get = held.__getitem__
    try:
        raise ValueError(1)
    except ValueError:
        return x + 1, get("a"), get("b"), list(map(get, "cd")), below["e"], dict.__getitem__(held, "f"), outcome(lambda: {}.__getitem__(1))


class Endless:
    def __init__(self, n):
        self.n = n

    @property
    def __wrapped__(self):
        return Endless(self.n - 1) if self.n else torch.add


@case(lambda: (t(3),), skip="*")
def wrappers_without_end(x):
    def unwrap(n):
        try:
            return inspect.unwrap(Endless(n))
        except ValueError as error:
            return error.args[0][:30]

    return x + 1, unwrap(3), unwrap(sys.getrecursionlimit() + 1)


@case(lambda: (t(3),), graphs=0)
def thrown_through_a_delegate(x):
    def inner():
        yield 1

    def outer():
        try:
            yield from inner()
        except KeyError:
            yield 2

    g = outer()
    next(g)
    g.throw(ValueError("through"))
    return x + 1


test_found8_cpython = cases.as_test(__name__)
