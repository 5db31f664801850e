"""What comes from outside of the program: clocks, the environment, context variables, thread locals."""

import contextvars
import os
import sys
import threading
import time

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- clocks ------------------------------------------------------------------------------------------------------------


@scenario(skip="*")
def clocks_go_on():
    last = [0.0]

    def f(x):
        y = x + 1
        now = time.perf_counter()
        later = now > last[0]
        last[0] = now
        return y * 2, later

    return Setup(f, lambda: (t(3),))


@scenario(skip="*")
def a_patched_clock():
    before = time.time
    ticks = [0]

    def tick():
        ticks[0] += 1
        return float(ticks[0])

    time.time = tick

    def cleanup():
        time.time = before

    def f(x):
        start = time.time()
        y = x * start
        torch._dynamo.graph_break()
        return y, time.time() - start

    return Setup(f, lambda: (t(3),), watch=lambda: ticks[0], cleanup=cleanup)


@case(lambda: (t(3),), skip="*")
def sleeping_and_formatting(x):
    time.sleep(0)
    return x + 1, time.strftime("%Y", time.gmtime(0)), time.monotonic() > 0


# ---- the environment ---------------------------------------------------------------------------------------------------


def with_variable(fn, changes=("2", None), **expect):
    def build():
        os.environ["CDYNAMO_TEST_VALUE"] = "1"

        def set_to(value):
            if value is None:
                os.environ.pop("CDYNAMO_TEST_VALUE", None)
            else:
                os.environ["CDYNAMO_TEST_VALUE"] = value

        return Setup(
            fn,
            lambda: (t(3),),
            watch=lambda: os.environ.get("CDYNAMO_TEST_VALUE"),
            changes=[lambda value=value: set_to(value) for value in changes],
            cleanup=lambda: set_to(None),
        )

    build.__name__ = fn.__name__
    scenario(**expect)(build)


def environment_get(x):
    return x * int(os.environ.get("CDYNAMO_TEST_VALUE", "7"))


def environment_getenv(x):
    return x + 1 if os.getenv("CDYNAMO_TEST_VALUE") == "1" else x - 1


def environment_contains(x):
    return x + 1 if "CDYNAMO_TEST_VALUE" in os.environ else x - 1


def environment_item(x):
    try:
        return x * int(os.environ["CDYNAMO_TEST_VALUE"])
    except KeyError as error:
        return x - 1, error.args


def environment_written(x):
    os.environ["CDYNAMO_TEST_VALUE"] = "5"
    return x + 1, os.environ["CDYNAMO_TEST_VALUE"]


def environment_deleted(x):
    os.environ.pop("CDYNAMO_TEST_VALUE", None)
    return x + 1, os.environ.get("CDYNAMO_TEST_VALUE")


with_variable(environment_get)
with_variable(environment_getenv)
with_variable(environment_contains)
with_variable(environment_item)
with_variable(environment_written, skip="*")
with_variable(environment_deleted, skip="*")


@scenario(skip="UnknownFunction")
def settings_of_sys():
    before = sys.getrecursionlimit()
    return Setup(
        lambda x: (x + 1, sys.getrecursionlimit()),
        lambda: (t(3),),
        changes=[lambda: sys.setrecursionlimit(before + 7)],
        cleanup=lambda: sys.setrecursionlimit(before),
    )


# ---- context variables and thread locals -------------------------------------------------------------------------------


@scenario(skip="*")
def a_context_variable():
    var = contextvars.ContextVar("var", default=2)

    def f(x):
        y = x * var.get()
        token = var.set(5)
        z = y + var.get()
        var.reset(token)
        return z, var.get(), var.get(9)

    return Setup(f, lambda: (t(3),), watch=lambda: var.get(), changes=[lambda: var.set(4)])


@scenario(after_change=(1,))
def a_context_variable_without_a_value():
    var = contextvars.ContextVar("var")

    def f(x):
        y = x + 1
        try:
            return y * var.get()
        except LookupError as error:
            return y, type(error).__name__

    return Setup(f, lambda: (t(3),), changes=[lambda: var.set(4)])


@scenario(skip="*")
def run_in_a_context():
    var = contextvars.ContextVar("var", default=1)

    def inner(x):
        var.set(3)
        return x * var.get()

    def f(x):
        return contextvars.copy_context().run(inner, x), var.get()

    return Setup(f, lambda: (t(3),))


@scenario(captures=(1, 1))
def a_thread_local():
    local = threading.local()
    local.scale = 2

    def f(x):
        y = x * local.scale
        local.scale += 1
        local.extra = "e"
        return y, local.scale, hasattr(local, "missing"), getattr(local, "missing", 4)

    def change():
        local.scale = 10

    return Setup(f, lambda: (t(3),), watch=lambda: dict(local.__dict__), changes=[change])


@scenario(skip="*")
def a_thread_local_in_threads():
    local = threading.local()
    local.scale = 2

    def f(x):
        return x * getattr(local, "scale", 7)

    def both(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(f(x)))
        thread.start()
        thread.join()
        return f(x), found[0]

    return Setup(both, lambda: (t(3),))


@scenario(skip="*")
def the_current_thread():
    return Setup(lambda x: (x + 1, threading.current_thread().name, threading.get_ident() == threading.main_thread().ident), lambda: (t(3),))


@scenario(skip="*")
def the_process():
    return Setup(lambda x: (x + 1, os.getpid(), os.getcwd(), os.path.join("a", "b"), os.sep), lambda: (t(3),))


test = cases.as_test(__name__)
