"""What an exception takes off the stack on its way to a handler of the same frame dies there: before the handler runs."""

import sys
import weakref

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


def told(log, name="g"):
    try:
        yield 1
        yield 2
    finally:
        log.append(f"closed {name}")


def breaking(log):
    try:
        yield 1
    finally:
        log.append("closing")
        torch._dynamo.graph_break()
        log.append("closed")


def fail(v):
    raise ValueError(v)


@case(lambda: (t(3),))
def loop_over_a_generator(x):
    log = []
    try:
        for v in told(log):
            x = x + v
            fail(v)
    except ValueError:
        log.append("handled")
    return x, log


@case(lambda: (t(3),))
def loop_over_a_zip(x):
    log = []
    try:
        for a, b in zip(told(log), told(log, "h"), strict=False):
            x = x + a + b
            1 // (a - 1)
    except ZeroDivisionError:
        log.append("handled")
    return x, log


@case(lambda: (t(3),))
def nested_loops_inner_first(x):
    log = []
    try:
        for a in told(log, "outer"):
            for b in told(log, "inner"):
                x = x + a * b
                raise KeyError(b)
    except KeyError:
        log.append("handled")
    return x, log


@case(lambda: (t(3),))
def comprehension(x):
    log = []
    try:
        [fail(v) for v in told(log)]
    except ValueError as e:
        log.append(f"handled {e.args}")
    return x + 1, log


@case(lambda: (t(3),))
def an_exception_that_holds_it(x):
    log = []
    try:
        for _ in (g := told(log)):
            raise ValueError(g)
    except ValueError as e:
        log.append(next(e.args[0]))
        del g
    log.append("after")
    return x + 1, log


@case(lambda: (t(3),))
def in_arguments_of_a_call(x):
    log = []

    def first(g):
        next(g)
        return g

    try:
        print(first(told(log)), fail(1))
    except ValueError:
        log.append("handled")
    return x * 2, log


@case(lambda: (t(3),))
def in_a_callee(x):
    log = []

    def inner(y):
        try:
            for v in told(log):
                y = y * v
                fail(v)
        except ValueError:
            log.append("handled")
        return y

    return inner(x) + 1, log


@scenario(skip="*")
def a_generator_that_exists():
    log = []

    def fn(x, g):
        try:
            for v in g:
                x = x + v
                fail(v)
        except ValueError:
            log.append("handled")
        return x

    def made():
        g = told(log)
        return (t(3), g)

    return Setup(fn, made, watch=lambda: list(log))


@scenario(skip="*")
def a_break_while_it_is_closed():
    def fn(x):
        log = []
        try:
            for v in breaking(log):
                x = x + v
                fail(v)
        except ValueError:
            log.append("handled")
        return x, log

    return Setup(fn, lambda: (t(3),))


@scenario(skip="*")
def a_break_while_a_variable_lets_go():
    def fn(x):
        log = []
        g = breaking(log)
        next(g)
        del g
        log.append("deleted")
        g = breaking(log)
        next(g)
        g = 3
        log.append("overwritten")

        def inner():
            h = breaking(log)
            return next(h)

        inner()
        log.append("returned")
        return x * g, log

    return Setup(fn, lambda: (t(3),))


@scenario(skip="*")
def one_that_raises_when_it_is_closed():
    def gen(log):
        try:
            yield 1
        finally:
            log.append("closing")
            raise KeyError(3)

    def fn(x):
        log = []
        hook, sys.unraisablehook = sys.unraisablehook, lambda u: log.append(repr(u.exc_value))
        try:
            g = gen(log)
            next(g)
            del g
            log.append("deleted")
        finally:
            sys.unraisablehook = hook
        return x * 2, log

    return Setup(fn, lambda: (t(3),))


@case(lambda: (t(3),), skip="*")
def a_function_that_only_a_variable_holds(x):
    def local():
        pass

    torch._dynamo.graph_break()
    reference = weakref.ref(local)
    return x * 2, reference() is None


test_unwound_stack = cases.as_test(__name__)
