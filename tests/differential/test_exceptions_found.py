"""What CPython's own tests (make cpython-tests) have found about exceptions, tracebacks, generators and coroutines."""

import ipaddress
import sys
import traceback
import types
import unittest
import warnings
from contextlib import ExitStack, contextmanager

from differ import Cases, t

cases = Cases()
case, scenario = cases.case, cases.scenario

some_global_name = 1


class SplitsItself(ExceptionGroup):
    def derive(self, excs):
        return SplitsItself(self.message, excs)


class OwnText(str):
    def __str__(self):
        return "own text"


class Hinted:
    def __init__(self, error):
        self.error = error

    def __iter__(self):
        return iter([1, 2])

    def __len__(self):
        raise self.error


class OnlyEqual:
    """Its subclass compares by another __eq__, which is asked first."""

    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return self.n == other.n if isinstance(other, OnlyEqual) else NotImplemented

    __hash__ = None


class EqualToNone(OnlyEqual):
    def __eq__(self, other):
        return False

    __hash__ = None


class NamelessError:
    def __getattr__(self, name):
        raise AttributeError("nothing here")

    @property
    def computed(self):
        raise AttributeError


class LaterStop:
    """An iterator whose StopIteration has a value, and that takes what is sent."""

    def __init__(self):
        self.got = []

    def __iter__(self):
        return self

    def __next__(self):
        if len(self.got) == 2:
            raise StopIteration(42)
        self.got.append(None)
        return len(self.got)

    def send(self, value):
        if len(self.got) == 2:
            raise StopIteration(value)
        self.got.append(value)
        return value


class BytesOfOnes(bytes):
    def __new__(cls, value):
        made = bytes.__new__(cls, b"1" * len(value))
        made.mark = "made"
        return made


def lines_of(error):
    return [(entry.name, entry.lineno) for entry in traceback.extract_tb(error.__traceback__)]


def frame_lines(error):
    found, at = [], error.__traceback__.tb_next  # the outermost frame is still running
    while at is not None:
        code = at.tb_frame.f_code
        found.append((code.co_name, code.co_firstlineno, at.tb_lineno, at.tb_frame.f_lineno))
        at = at.tb_next
    return found


def fails():
    raise ValueError("inside")


def fails_in_finally():
    try:
        raise ValueError("inside")
    finally:
        str()


def misspells():
    some_local_name = 2
    return some_local_nam, some_local_name  # noqa: F821


# ---- tracebacks --------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def parts_of_tracebacks(x):
    try:
        fails()
    except ValueError as error:
        tb = error.__traceback__
        inner = tb.tb_next
        return x + 1, tb is error.__traceback__, inner is tb.tb_next, inner is tb, tb == inner, inner.tb_next, tb.tb_lineno, inner.tb_lineno


@case(lambda: (t(3),), skip="ExceptionTraceback")
def tracebacks_handed_on(x):
    try:
        fails()
    except ValueError as error:
        tb = error.__traceback__
    other = KeyError("other").with_traceback(tb)
    same = other.__traceback__ is tb
    try:
        raise other
    except KeyError as error:
        added = error.__traceback__.tb_next is tb
    third = IndexError()
    third.__traceback__ = tb
    return x * 2, same, added, third.__traceback__ is tb, lines_of(third), lines_of(other), tb


@case(lambda: (t(3),), skip="*")
def frames_of_tracebacks(x):
    seen = []
    for fn in (fails, fails_in_finally):
        x = x + 1
        try:
            fn()
        except ValueError as error:
            seen.append(error)
    return x, [frame_lines(e) for e in seen]


@case(lambda: (t(3),), skip="ExceptionTraceback")
def suggestions_for_names(x):
    errors = []
    for fn in (misspells, lambda: some_global_nam):  # noqa: F821
        try:
            fn()
        except NameError as error:
            errors.append(error)
    return x + 1, ["".join(traceback.format_exception(e)) for e in errors], errors


@case(lambda: (t(3),))
def errors_that_name_the_attribute(x):
    o = NamelessError()
    seen = []
    for name in ("missing", "computed"):
        try:
            getattr(o, name)
        except AttributeError as error:
            seen.append((error.name, error.obj is o, error.args))
    try:
        x = x + o.direct
    except AttributeError as error:
        seen.append((error.name, error.obj is o, error.args))
    try:
        o.computed
    except AttributeError as error:
        seen.append((error.name, error.obj is o, error.args))

    class Own(AttributeError):
        pass

    try:
        raise Own("own")
    except Own as error:
        seen.append((error.name, error.obj, error.args))
    return x * 2, seen


@case(lambda: (t(3),))
def assertions_about_exceptions(x):
    test = unittest.TestCase()
    with test.assertRaises(ValueError) as seen:
        fails()
    with test.assertRaisesRegex(ValueError, "in.ide"):
        fails()
    test.assertRaises(KeyError, {}.__getitem__, 1)
    return x + 1, seen.exception, seen.exception.__traceback__


# ---- groups ------------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="ExceptionTraceback")
def parts_of_groups(x):
    try:
        raise ExceptionGroup("all", [ValueError(1), TypeError(2), ExceptionGroup("inner", [ValueError(3), KeyError(4)])])
    except ExceptionGroup as group:
        group.add_note("a note")
        match, rest = group.split(ValueError)
        part = group.subgroup(lambda e: isinstance(e, KeyError))
        tb = group.__traceback__
        return (
            x + 1,
            match,
            rest,
            part,
            [p.__traceback__ is tb for p in (match, rest, part)],
            [p.__notes__ for p in (match, rest, part)],
            lines_of(match),
        )


@case(lambda: (t(3),), skip="*")
def parts_of_existing_groups(x):
    x = x + 1
    try:
        raise SplitsItself("all", [ValueError(1), OSError(sys.intern("x"))])
    except SplitsItself as group:
        print(end="", file=sys.stderr, flush=bool(id(group)))
        match, rest = group.split(ValueError)
        return x + 1, match, rest, match.__traceback__ is group.__traceback__, type(rest).__name__


# ---- contexts ----------------------------------------------------------------------------------------------------------


@contextmanager
def raises_behind(error):
    try:
        yield
    finally:
        raise error


@case(lambda: (t(3),))
def contexts_in_an_exit_stack(x):
    one, two, three = Exception(1), Exception(2), Exception(3)
    try:
        with ExitStack() as stack:
            stack.enter_context(raises_behind(three))
            stack.enter_context(raises_behind(two))
            raise one
    except Exception as error:
        return x + 1, error is three, error.__context__ is two, two.__context__ is one, one.__context__


@case(lambda: (t(3),), skip="ExceptionTraceback")
def what_is_thrown_into_generators(x):
    def catches():
        while True:
            try:
                yield
            except KeyError as error:
                log.append((type(error).__name__, error.__context__))

    def handles():
        try:
            raise IndexError
        except IndexError:
            try:
                yield
            except KeyError as error:
                log.append((type(error).__name__, type(error.__context__).__name__))
        yield

    log = []
    for make in (catches, handles):
        g = make()
        next(g)
        try:
            raise ValueError
        except ValueError:
            g.throw(KeyError)
        g.close()
    fresh = catches()
    try:
        fresh.throw(ValueError("unstarted"))
    except ValueError as error:
        log.append((len(lines_of(error)), error.__context__))
    try:
        fresh.throw(ValueError("ended"))
    except ValueError as error:
        log.append((len(lines_of(error)), error.__context__))
    try:
        fresh.throw(ValueError, None, 3)
    except TypeError as error:
        log.append(error.args)
    return x + 1, log


# ---- generators and coroutines -----------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def values_of_delegates(x):
    def outer(inner):
        result = yield from inner
        log.append(result)

    log = []
    log.append(list(outer(LaterStop())))
    g = outer(LaterStop())
    log.append([next(g), g.send("sent")])
    try:
        g.send("last")
    except StopIteration:
        log.append("ended")
    return x + 1, log


@case(lambda: (t(3),))
def coroutines_are_not_iterable(x):
    async def coroutine():
        return 1

    c = coroutine()
    log = []
    for use in (list, tuple, sum, iter, next):
        try:
            use(c)
        except TypeError as error:
            log.append(error.args)
    try:
        for _ in c:
            pass
    except TypeError as error:
        log.append(error.args)
    try:
        c.send(1)
    except TypeError as error:
        log.append(error.args)
    c.close()
    return x + 1, log, c


@case(lambda: (t(3),), skip="*")
def coroutines_that_nobody_awaits(x):
    async def dropped():
        return 1

    def drops_at_its_end():
        kept = dropped()  # noqa: F841

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x = x + 1
        dropped()
        x = x + 2
        drops_at_its_end()
        x = x * 3
    return x, [(w.category.__name__, str(w.message)) for w in seen]


@case(lambda: (t(3),))
def bad_objects_of_async_for(x):
    class Bad:
        def __aiter__(self):
            return self

        def __anext__(self):
            return self

        def __await__(self):
            raise KeyError("in await")

    class NotAwaitable(Bad):
        __await__ = None

        def __anext__(self):
            return 3

    async def loop(over):
        async for _ in over:
            pass

    log = []
    for over in (Bad(), NotAwaitable()):
        try:
            loop(over).send(None)
        except TypeError as error:
            log.append((error.args, repr(error.__cause__)))
    return x + 1, log


@case(lambda: (t(3),), skip="*")
def what_async_generators_give(x):
    async def numbers():
        sent = yield 1
        yield sent

    g = numbers()
    first, second, third = g.__anext__(), g.asend(5), g.aclose()
    log = [type(v).__name__ for v in (first, second, third)]
    x = x + 1
    for step in (first, second, third):
        try:
            step.send(None)
        except StopIteration as stop:
            log.append(stop.value)
    return x * 2, log


@types.coroutine
def pause(value):
    got = yield value
    return got


@case(lambda: (t(3),))
def async_generators_inside(x):
    async def numbers(y):
        for i in range(3):
            sent = yield y * i
            if sent is not None:
                await pause(sent)

    async def main(y):
        total = y
        async for item in numbers(y):
            total = total + item
        g = numbers(total)
        total = total + await g.__anext__()
        total = total + await g.asend("sent")
        await g.aclose()
        return total

    c = main(x)
    log = [c.send(None)]
    try:
        c.send("back")
    except StopIteration as stop:
        log.append(stop.value)
    return log


# ---- other things ------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def lists_that_ask_for_the_length(x):
    log = []
    for error in (TypeError("swallowed"), RuntimeError("told")):
        for take in (list, tuple, sorted, set, [].extend, lambda h: [*h], lambda h: {*h}):
            try:
                log.append(take(Hinted(error)))
            except RuntimeError as caught:
                log.append(caught.args)
    return x + 1, log


@case(lambda: (t(3),))
def comparisons_by_the_subclass(x):
    a, b = OnlyEqual(1), EqualToNone(1)
    return x + 1, a == b, a != b, b != a, a.__ne__(3), a.__ne__(OnlyEqual(1)), b.__ne__(3)


@case(lambda: (t(3),))
def annotations_of_a_class_without(x):
    class Plain:
        pass

    class Annotated:
        n: int

    class Inherits(Annotated):
        pass

    Plain.__annotations__["later"] = str
    return x + 1, Plain.__annotations__, Annotated.__annotations__, Inherits.__annotations__ == {}, "n" in Inherits.__annotations__


@case(lambda: (t(3),))
def texts_of_text_classes(x):
    s = OwnText("plain")
    return x + 1, f"{s}", "{}".format(s), "%s" % s, s.upper()


@case(lambda: (t(3),))
def class_methods_of_subclasses(x):
    made = BytesOfOnes.fromhex("0a0b")
    return x + 1, made, type(made) is BytesOfOnes, made.mark, bytes.fromhex("0a")


@case(lambda: (t(3),), skip="*")
def sets_of_objects_with_slots(x):
    found = [ipaddress.ip_address(n) for n in ("1.1.1.1", "1.1.1.2", "1.1.1.1")]
    ordered = sorted(set(found))
    x = x + len(ordered)
    return x, [str(a) for a in ordered]


class Addressed:
    __slots__ = ("number",)

    def __init__(self, n):
        self.number = int.from_bytes(map(int, [n]), "big")

    def __hash__(self):
        return hash(hex(self.number))

    def __eq__(self, other):
        return self.number == other.number


@case(lambda: (t(3),), skip="*")
def keys_that_were_changed(x):
    found = {Addressed(1), Addressed(2)}
    by_name = {Addressed(3): x + 1}
    Addressed(4)
    return sorted(a.number for a in found), by_name[Addressed(3)]


class GivesBytes:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


@case(lambda: (t(3),))
def bytes_of_iterables(x):
    log = [bytes(GivesBytes([1, 2])), bytes(map(int, "34")), bytes(n for n in (5, 6)), bytes(range(2))]
    try:
        bytes(GivesBytes([300]))
    except ValueError as error:
        log.append(error.args)
    return x + 1, log


@case(lambda: (t(3),), skip="*")
def bytes_of_objects_that_are_no_numbers(x):
    try:
        return bytes(GivesBytes([GivesBytes([])]))
    except TypeError as error:
        return x + 1, error.args


test_exceptions_found = cases.as_test(__name__)
