"""Exceptions: handlers in any nesting, chaining, groups, frames and generators they cross, tracebacks, sys.exc_info, ExitStack."""

import contextlib
import io
import sys
import traceback

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


def chain_of(error):
    """What a user sees of an exception and of those behind it."""
    seen = []
    while error is not None and len(seen) < 10:
        seen.append((type(error).__name__, error.args, error.__suppress_context__, getattr(error, "__notes__", None)))
        error = error.__cause__ if error.__cause__ is not None else error.__context__
    return seen


def lines_of(error):
    return [(entry.name, entry.lineno) for entry in traceback.extract_tb(error.__traceback__)]


# ---- nesting ----


@case(lambda: (t(3),))
def handlers_nested_in_handlers(x):
    log = []
    try:
        try:
            raise ValueError("a")
        except ValueError as a:
            log.append(a.args)
            try:
                raise KeyError("b")
            except KeyError as b:
                log.append((b.args, b.__context__ is a))
                try:
                    raise TypeError("c") from a
                finally:
                    log.append("finally c")
            finally:
                log.append("finally b")
        finally:
            log.append("finally a")
    except TypeError as c:
        log.append(c.args)
        return x + 1, log, c
    return x, log, None


@case(lambda: (t(3),))
def finally_in_loops(x):
    log = []
    for i in range(4):
        try:
            if i == 0:
                continue
            if i == 2:
                break
            x = x + i
        finally:
            log.append(i)
    else:
        log.append("else")
    while True:
        try:
            try:
                break
            finally:
                log.append("inner")
        finally:
            log.append("outer")
    return x, log


@case(lambda: (t(3),))
def return_values_through_finally(x):
    log = []

    def plain():
        try:
            return x + 1
        finally:
            log.append("plain")

    def replaced():
        try:
            raise ValueError
        finally:
            return x + 2  # noqa: B012

    def nested():
        for i in range(3):
            try:
                try:
                    return i
                finally:
                    log.append("nested")
            finally:
                if i < 2:
                    continue  # noqa: B012
        return x * 3

    return plain(), replaced(), nested(), log


@case(lambda: (t(3),))
def else_and_finally_order(x):
    log = []

    def f(n):
        try:
            log.append("try")
            if n == 1:
                raise ValueError(n)
        except ValueError:
            log.append("except")
            if n == 1:
                return x
        else:
            log.append("else")
            if n == 2:
                return x + 1
        finally:
            log.append("finally")
        return x + 2

    return f(0), f(1), f(2), log


@case(lambda: (t(3),))
def exception_in_else_is_not_caught(x):
    try:
        try:
            y = x + 1
        except ValueError:
            return x
        else:
            raise ValueError("from else")
    except ValueError as error:
        return y, error.args, error.__context__


@case(lambda: (t(3),))
def exception_in_finally_replaces(x):
    try:
        try:
            raise ValueError("first")
        finally:
            {}["second"]
    except KeyError as error:
        return x + 1, chain_of(error)


# ---- chaining ----


@case(lambda: (t(3),))
def chaining_in_all_forms(x):
    out = []
    for how in range(5):
        try:
            try:
                raise ValueError("low")
            except ValueError as low:
                if how == 0:
                    raise TypeError("from") from low
                if how == 1:
                    raise TypeError("none") from None
                if how == 2:
                    raise TypeError("implicit")  # noqa: B904
                if how == 3:
                    raise TypeError("other") from KeyError("cause")
                raise
        except (TypeError, ValueError) as error:
            out.append(chain_of(error))
            out.append((error.__cause__ is None, error.__context__ is None))
    return x + 1, out


@case(lambda: (t(3),))
def cause_that_is_a_class(x):
    try:
        raise TypeError("a") from KeyError
    except TypeError as error:
        return x + 1, error, type(error.__cause__), error.__cause__.args


@case(lambda: (t(3),))
def bad_cause_and_bad_raise(x):
    out = []
    for how in range(4):
        try:
            if how == 0:
                raise TypeError("a") from 3
            if how == 1:
                raise 3
            if how == 2:
                raise int
            raise
        except (TypeError, RuntimeError) as error:
            out.append((type(error).__name__, error.args))
    return x + 1, out


@case(lambda: (t(3),))
def notes(x):
    try:
        raise ValueError("v")
    except ValueError as error:
        error.add_note("one")
        error.add_note(f"two {error.args[0]}")
        bad = None
        try:
            error.add_note(3)
        except TypeError as wrong:
            bad = wrong.args
        return x + 1, error, error.__notes__, bad


@case(lambda: (t(3),))
def notes_from_inner_frame(x):
    def check(n):
        try:
            if n > 1:
                raise ValueError(n)
            return x * n
        except ValueError as error:
            error.add_note("while checking")
            raise

    try:
        check(1)
        check(2)
    except ValueError as error:
        return x + 1, error


@case(lambda: (t(3),))
def with_traceback_none(x):
    try:
        raise ValueError("v").with_traceback(None)
    except ValueError as error:
        again = error.with_traceback(None)
        return x + 1, again is error, error


@case(lambda: (t(3),))
def cause_and_context_set_by_hand(x):
    a, b, c = ValueError("a"), KeyError("b"), TypeError("c")
    a.__cause__ = b
    b.__context__ = c
    a.__suppress_context__ = False
    try:
        raise a
    except ValueError as error:
        return x + 1, error, error.__cause__ is b, error.__cause__.__context__ is c, error.__suppress_context__


@case(lambda: (t(3),))
def bare_raise_in_called_function(x):
    def again():
        raise  # noqa: PLE0704

    log = []
    try:
        try:
            raise ValueError("v")
        except ValueError:
            again()
    except ValueError as error:
        log.append(error.args)
    try:
        again()
    except RuntimeError as error:
        log.append(error.args)
    return x + 1, log


@case(lambda: (t(3),))
def context_of_same_exception(x):
    a = ValueError("a")
    try:
        try:
            raise a
        except ValueError:
            try:
                raise KeyError("k")
            except KeyError:
                raise a  # noqa: B904
    except ValueError as error:
        return x + 1, error is a, type(error.__context__).__name__, error.__context__.__context__


# ---- matching ----


class Base(Exception):
    def __init__(self, code, *rest):
        super().__init__(code, *rest)
        self.code = code


class Derived(Base):
    pass


class Silent(Exception):
    def __str__(self):
        return "quiet"


@case(lambda: (t(3),))
def tuples_of_types(x):
    groups = ((KeyError, IndexError), (Base, (TypeError,)), ())
    out = []
    for make in (lambda: KeyError(1), lambda: Derived(3, "r"), lambda: Silent("s")):
        try:
            raise make()
        except groups[0] as error:
            out.append(("first", error.args))
        except Base as error:
            out.append(("second", error.code, error.args))
        except groups[2]:
            out.append("never")
        except Exception as error:
            out.append((str(error), repr(error)))
    return x + 1, out


@case(lambda: (t(3),))
def catching_what_is_no_exception(x):
    try:
        try:
            raise ValueError("v")
        except 3:  # noqa: B030
            pass
    except TypeError as error:
        return x + 1, error.args, error.__context__


@case(lambda: (t(3),))
def base_exceptions(x):
    out = []
    for make in (KeyboardInterrupt, SystemExit, GeneratorExit):
        try:
            try:
                raise make("m")
            except Exception:
                out.append("never")
        except BaseException as error:
            out.append((type(error).__name__, error.args))
    return x + 1, out


@case(lambda: (t(3),))
def attributes_of_builtin_exceptions(x):
    out = []
    for how in range(6):
        try:
            if how == 0:
                {}["k"]
            elif how == 1:
                x.no_such_attribute  # noqa: B018
            elif how == 2:
                undefined_name  # noqa: B018, F821
            elif how == 3:
                raise OSError(2, "No such file", "name")
            elif how == 4:
                raise StopIteration(5)
            else:
                [].pop()
        except AttributeError as error:
            out.append((error.name, error.obj is x, error.args))
        except NameError as error:
            out.append((error.name, error.args))
        except OSError as error:
            out.append((type(error).__name__, error.errno, error.strerror, error.filename, str(error)))
        except StopIteration as error:
            out.append(error.value)
        except LookupError as error:
            out.append((repr(error), error.args))
    return x + 1, out


# ---- frames and generators ----


@case(lambda: (t(3),))
def crossing_three_frames(x):
    log = []

    def low(n):
        try:
            if n == 3:
                raise Derived(n)
            return x * n
        finally:
            log.append(("low", n))

    def mid(n):
        with contextlib.suppress(KeyError):
            return low(n)

    def high(n):
        try:
            return mid(n)
        except Base as error:
            log.append(error.code)
            return x - 1

    return high(2), high(3), log


@case(lambda: (t(3),))
def crossing_generators(x):
    log = []

    def inner():
        try:
            yield x + 1
            raise ValueError("inner")
        finally:
            log.append("inner done")

    def outer():
        try:
            yield from inner()
        except ValueError as error:
            log.append(error.args)
            yield x + 2
            raise KeyError("outer") from error

    out = []
    try:
        for y in outer():
            out.append(y)
    except KeyError as error:
        log.append((error.args, type(error.__cause__).__name__))
    return out, log


@case(lambda: (t(3),))
def thrown_into_generators(x):
    log = []

    def inner():
        while True:
            try:
                yield x + len(log)
            except ValueError as error:
                log.append(error.args)

    def outer():
        yield from inner()

    g = outer()
    first = next(g)
    second = g.throw(ValueError("thrown"))
    third = g.throw(ValueError, "old style") if sys.version_info < (3, 12) else g.throw(ValueError("old style"))
    try:
        g.throw(KeyError("out"))
    except KeyError as error:
        log.append(error.args)
    try:
        next(g)
    except StopIteration:
        log.append("over")
    return first, second, third, log


@case(lambda: (t(3),))
def handled_exception_of_a_generator(x):
    log = []

    def g():
        try:
            raise ValueError("mine")
        except ValueError:
            yield 1
            log.append(type(sys.exc_info()[1]).__name__)
            yield 2

    it = g()
    next(it)
    log.append(sys.exc_info()[1])
    try:
        raise KeyError("theirs")
    except KeyError:
        next(it)
        log.append(type(sys.exc_info()[1]).__name__)
    log.append(sys.exc_info())
    return x + 1, log


@case(lambda: (t(3),))
def stop_iteration_from_next_in_function(x):
    def first(items):
        return next(iter(items))

    try:
        first([])
    except StopIteration as error:
        return x + 1, error.args, error.value


# ---- groups ----


@case(lambda: (t(3),))
def except_star_one_kind(x):
    try:
        raise ExceptionGroup("g", [ValueError("a"), ValueError("b")])
    except* ValueError as group:
        seen = (type(group).__name__, group.message, [e.args for e in group.exceptions])
    return x + 1, seen


@case(lambda: (t(3),))
def except_star_splits(x):
    log = []
    try:
        raise ExceptionGroup("g", [ValueError("a"), TypeError("b"), ExceptionGroup("n", [KeyError("c"), ValueError("d")])])
    except* ValueError as group:
        log.append((group.message, len(group.exceptions), group.exceptions[1].exceptions[0].args))
    except* (TypeError, KeyError) as group:
        log.append((group.message, len(group.exceptions)))
    else:
        log.append("else")
    finally:
        log.append("finally")
    return x + 1, log


@case(lambda: (t(3),))
def except_star_rest_goes_on(x):
    log = []
    try:
        try:
            raise ExceptionGroup("g", [ValueError("a"), TypeError("b")])
        except* ValueError as group:
            log.append(len(group.exceptions))
    except ExceptionGroup as rest:
        log.append((rest.message, [type(e).__name__ for e in rest.exceptions]))
    return x + 1, log


@case(lambda: (t(3),))
def except_star_of_plain_exception(x):
    try:
        raise ValueError("plain")
    except* ValueError as group:
        seen = (type(group).__name__, group.message, group.exceptions[0].args)
    return x + 1, seen


@case(lambda: (t(3),))
def except_star_raises_in_handler(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError("a"), TypeError("b")])
        except* ValueError:
            raise KeyError("new")  # noqa: B904
        except* TypeError:
            raise
    except ExceptionGroup as error:
        return x + 1, error.message, [type(e).__name__ for e in error.exceptions]


@case(lambda: (t(3),))
def except_star_without_error(x):
    try:
        y = x + 1
    except* ValueError:
        y = x
    else:
        y = y * 2
    return y


@case(lambda: (t(3),))
def except_star_forbidden_types(x):
    try:
        try:
            raise ValueError("a")
        except* ExceptionGroup:
            pass
    except TypeError as error:
        return x + 1, error.args


@case(lambda: (t(3),))
def group_methods(x):
    group = ExceptionGroup("g", [ValueError("a"), ExceptionGroup("n", [TypeError("b"), ValueError("c")])])
    match, rest = group.split(ValueError)
    sub = group.subgroup(lambda e: isinstance(e, TypeError))
    none = group.subgroup(KeyError)
    derived = group.derive([KeyError("k")])
    return (
        x + 1,
        [e.args for e in match.exceptions[:1]],
        match.message,
        len(rest.exceptions),
        sub.exceptions[0].message,
        none,
        derived.message,
        str(group),
    )


@case(lambda: (t(3),))
def group_made_wrongly(x):
    out = []
    for make in (
        lambda: ExceptionGroup("g", []),
        lambda: ExceptionGroup("g", [3]),
        lambda: ExceptionGroup("g"),
        lambda: ExceptionGroup(1, [ValueError()]),
    ):
        try:
            make()
        except (TypeError, ValueError) as error:
            out.append((type(error).__name__, error.args))
    return x + 1, out


@case(lambda: (t(3),))
def uncaught_group(x):
    y = x + 1
    raise ExceptionGroup("g", [ValueError("a", y.shape[0]), TypeError("b")])


# ---- what sys says, tracebacks ----


@case(lambda: (t(3),))
def exc_info_in_handlers(x):
    out = [sys.exc_info()]
    try:
        raise ValueError("v")
    except ValueError as error:
        kind, value, tb = sys.exc_info()
        out.append((kind, value is error, tb is not None))
        if hasattr(sys, "exception"):
            out.append(sys.exception() is error)
    out.append(sys.exc_info())
    if hasattr(sys, "exception"):
        out.append(sys.exception())
    return x + 1, out


@case(lambda: (t(3),), skip="*")
def traceback_lines(x):
    def low():
        raise ValueError("low")

    def mid():
        low()

    try:
        mid()
    except ValueError as error:
        kept = error
    return x + 1, lines_of(kept)


@case(lambda: (t(3),), skip="*")
def format_exception_text(x):
    try:
        try:
            raise ValueError("low")
        except ValueError as low:
            raise TypeError("high") from low
    except TypeError:
        text = traceback.format_exc()
    return x + 1, text.splitlines()[0], text.splitlines()[-1]


@case(lambda: (t(3),))
def returned_exception_keeps_traceback(x):
    def low():
        raise ValueError("low")

    try:
        low()
    except ValueError as error:
        return x + 1, error


# ---- managers ----


@contextlib.contextmanager
def noting(log, name, swallow=()):
    log.append(f"enter {name}")
    try:
        yield name
    except swallow as error:
        log.append(f"swallow {error}")
    finally:
        log.append(f"exit {name}")


@case(lambda: (t(3),))
def exit_stack_orders(x):
    log = []
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(noting(log, "a"))
        b = stack.enter_context(noting(log, "b"))
        stack.callback(log.append, "callback")
        stack.callback(lambda *args, **kw: log.append((args, kw)), 1, k=2)
        y = x * 2
    return y, a, b, log


@case(lambda: (t(3),))
def exit_stack_swallows(x):
    log = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(noting(log, "a", ValueError))
        stack.enter_context(noting(log, "b"))
        x = x + 1
        raise ValueError("inside")
    return x, log


@case(lambda: (t(3),))
def exit_stack_replaces_exceptions(x):
    log = []

    def bad():
        raise KeyError("from callback")

    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(noting(log, "a"))
            stack.callback(bad)
            raise ValueError("inside")
    except KeyError as error:
        log.append(chain_of(error))
    return x + 1, log


@case(lambda: (t(3),))
def exit_stack_pop_all_and_push(x):
    log = []

    def on_exit(kind, value, tb):
        log.append((None if kind is None else kind.__name__, tb is None))
        return kind is not None

    with contextlib.ExitStack() as stack:
        stack.push(on_exit)
        stack.enter_context(noting(log, "moved"))
        kept = stack.pop_all()
    log.append("after")
    kept.close()
    with contextlib.ExitStack() as stack:
        stack.push(on_exit)
        raise ValueError("swallowed")
    return x + 1, log


@case(lambda: (t(3),))
def suppress_forms(x):
    log = []
    with contextlib.suppress(ValueError, KeyError):
        log.append(1)
        {}["k"]
        log.append("never")
    with contextlib.suppress():
        log.append(2)
    try:
        with contextlib.suppress(KeyError):
            raise ValueError("out")
    except ValueError:
        log.append(3)
    return x + 1, log


@case(lambda: (t(3),))
def closing_and_nullcontext(x):
    log = []

    thing = None
    try:
        with contextlib.closing(ClosedThing(log)) as thing, contextlib.nullcontext(5) as n:
            x = x + n
            raise ValueError
    except ValueError:
        log.append("caught")
    return x, log, thing.log is log


class ClosedThing:
    def __init__(self, log):
        self.log = log

    def close(self):
        self.log.append("closed")


@case(lambda: (t(3),), skip="*")
def redirected_output(x):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        print("inside")
    print("outside")
    return x + 1, out.getvalue()


@case(lambda: (t(3),))
def contextmanager_exceptions(x):
    log = []

    @contextlib.contextmanager
    def translating():
        try:
            yield 3
        except KeyError as error:
            raise TypeError("translated") from error

    try:
        with translating() as n:
            x = x + n
            raise KeyError("k")
    except TypeError as error:
        log.append(chain_of(error))
    try:
        with translating():
            raise ValueError("through")
    except ValueError as error:
        log.append(chain_of(error))
    return x, log


@case(lambda: (t(3),))
def contextmanager_misused(x):
    log = []

    @contextlib.contextmanager
    def twice():
        yield 1
        yield 2

    @contextlib.contextmanager
    def never():
        return
        yield

    @contextlib.contextmanager
    def stops():
        yield
        raise StopIteration

    for manager in (twice, never, stops):
        try:
            with manager():
                log.append("body")
        except RuntimeError as error:
            log.append(error.args)
    return x + 1, log


@case(lambda: (t(3),))
def contextmanager_as_decorator(x):
    log = []

    @noting(log, "decorated")
    def g(a):
        log.append("body")
        return a * 2

    return g(x), g(x + 1), log


@case(lambda: (t(3),))
def manager_without_methods(x):
    out = []

    for bad in (3, [], None):
        try:
            with bad:
                pass
        except TypeError as error:
            out.append(error.args)
    return x + 1, out


class Manager:
    def __init__(self, log, swallow):
        self.log = log
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, tb):
        self.log.append((None if kind is None else kind.__name__, value is None, tb is None))
        return self.swallow


@case(lambda: (t(3),))
def managers_in_all_exits(x):
    log = []

    def f(how):
        for i in range(2):
            with Manager(log, True) as outer, Manager(outer.log, False):
                if how == 0:
                    return x + 1
                if how == 1:
                    continue
                if how == 2:
                    break
                raise ValueError(how)
        return x + 2

    return [f(how) for how in range(4)], log


@case(lambda: (t(3),))
def exit_raises(x):
    log = []

    try:
        with BadExit():
            raise ValueError("body")
    except KeyError as error:
        log.append(chain_of(error))
    return x + 1, log


class BadExit:
    def __enter__(self):
        return self

    def __exit__(self, *args):
        raise KeyError("exit")


# ---- tensor operations that fail ----


@case(lambda: (t(3), t(4)))
def bad_shapes_caught(x, y):
    try:
        return x + y
    except RuntimeError as error:
        return x + 1, error.args


@case(lambda: (t(3, 4), t(5, 6)))
def bad_matmul_caught(x, y):
    log = []
    for op in (torch.matmul, torch.mm, torch.bmm):
        try:
            op(x, y)
        except RuntimeError as error:
            log.append(error.args)
    return x + 1, log


@case(lambda: (t(3, 4),))
def bad_indices_caught(x):
    log = []
    for index in (5, (0, 9), (0, 0, 0)):
        try:
            x[index]
        except IndexError as error:
            log.append(error.args)
    try:
        x.sum(dim=4)
    except IndexError as error:
        log.append(error.args)
    return x + 1, log


@case(lambda: (t(3, 4),))
def bad_views_and_dtypes_caught(x):
    log = []
    for make in (
        lambda: x.view(5),
        lambda: x.reshape(7, 2),
        lambda: torch.cat([x, x[0]]),
        lambda: x.squeeze(5),
        lambda: torch.stack([]),
        lambda: x.expand(2, 2),
    ):
        try:
            make()
        except (RuntimeError, IndexError, TypeError, NotImplementedError) as error:
            log.append((type(error).__name__, error.args))
    return x + 1, log


@case(lambda: (t(3, 4),))
def bad_arguments_caught(x):
    log = []
    try:
        torch.add(x)
    except TypeError as error:
        log.append(type(error).__name__)
    try:
        x.no_such_method()
    except AttributeError as error:
        log.append(error.args)
    return x + 1, log


test_lang_exceptions = cases.as_test(__name__)
