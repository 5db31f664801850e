"""Coroutines: made and driven inside of a capture, given to the caller, compiled themselves."""

import asyncio
import contextlib

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


def drive(coroutine):
    """Runs a coroutine to its end; what it waits for is sent back doubled."""
    sent = None
    given = []
    while True:
        try:
            item = coroutine.send(sent)
        except StopIteration as stop:
            return stop.value, given
        given.append(item)
        sent = item * 2


class Ready:
    """Gives one item out and is worth what comes back."""

    def __init__(self, item):
        self.item = item

    def __await__(self):
        got = yield self.item
        return got


async def doubled(x):
    return x * 2


async def waits(x):
    a = await doubled(x)
    b = await Ready(a)
    return a + b


@case(lambda: (t(3),))
def await_of_a_coroutine(x):
    async def main():
        y = await doubled(x)
        return y + await doubled(y)

    return drive(main())


@case(lambda: (t(3),))
def await_that_gives_items_out(x):
    return drive(waits(x))


@case(lambda: (t(3),))
def coroutine_methods(x):
    log = []

    async def main():
        try:
            await Ready(x)
        except ValueError as error:
            log.append(error.args)
            return x + 1
        finally:
            log.append("finally")

    c = main()
    first = c.send(None)
    try:
        c.throw(ValueError("thrown"))
    except StopIteration as stop:
        result = stop.value
    d = main()
    d.send(None)
    d.close()
    e = main()
    e.close()
    return first, result, log


@case(lambda: (t(3),))
def wrong_awaits(x):
    out = []
    for bad in (3, None, [1]):

        async def main(bad=bad):
            await bad

        try:
            drive(main())
        except TypeError as error:
            out.append(error.args)

    async def once():
        return 1

    async def twice():
        c = once()
        await c
        await c

    try:
        drive(twice())
    except RuntimeError as error:
        out.append(error.args)

    async def stops():
        raise StopIteration

    try:
        drive(stops())
    except RuntimeError as error:
        out.append((error.args, type(error.__cause__).__name__))
    return x + 1, out


class Manager:
    def __init__(self, log, swallow=False):
        self.log = log
        self.swallow = swallow

    async def __aenter__(self):
        self.log.append("enter")
        return self

    async def __aexit__(self, kind, value, tb):
        self.log.append(None if kind is None else kind.__name__)
        return self.swallow


@case(lambda: (t(3),))
def async_with(x):
    log = []

    async def main(fails, swallow):
        async with Manager(log, swallow) as m:
            m.log.append("body")
            if fails:
                raise ValueError("inside")
        return x + 1

    out = [drive(main(False, False)), drive(main(True, True))]
    try:
        drive(main(True, False))
    except ValueError as error:
        log.append(error.args)
    return out, log


@case(lambda: (t(3),))
def async_with_what_is_no_manager(x):
    out = []
    for bad in (3, contextlib.nullcontext):

        async def main(bad=bad):
            async with bad:
                pass

        try:
            drive(main())
        except TypeError as error:
            out.append(error.args)
    return x + 1, out


async def numbers(n):
    for i in range(n):
        await Ready(i)
        yield i


class Counter:
    def __init__(self, n):
        self.n = n

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        return self.n


@case(lambda: (t(3),))
def async_for(x):
    async def main():
        out = []
        async for i in Counter(3):
            out.append(x + i)
        else:
            out.append("else")
        async for i in numbers(3):
            if i == 2:
                break
            out.append(x * i)
        return out

    return drive(main())


@case(lambda: (t(3),))
def async_comprehensions(x):
    async def main():
        a = [x + i async for i in Counter(2)]
        b = {i: i * 2 async for i in numbers(3) if i != 1}
        c = {i async for i in Counter(3)}
        d = [await doubled(i) for i in range(2)]
        e = [j async for i in Counter(2) for j in range(i + 1)]
        return a, b, c, d, e

    return drive(main())


@case(lambda: (t(3),))
def async_generator_errors(x):
    log = []

    async def failing():
        yield 1
        raise ValueError("in generator")

    async def stops():
        yield 1
        raise StopAsyncIteration

    async def main(make):
        async for i in make():
            log.append(i)

    for make in (failing, stops):
        try:
            drive(main(make))
        except (ValueError, RuntimeError) as error:
            log.append((type(error).__name__, error.args))
    return x + 1, log


@case(lambda: (t(3),))
def async_exit_stack(x):
    log = []

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(Manager(log))
            stack.callback(log.append, "callback")
            return x + 1

    return drive(main()), log


@case(lambda: (t(3),))
def async_contextmanager(x):
    log = []

    @contextlib.asynccontextmanager
    async def managed():
        log.append("enter")
        try:
            yield 3
        finally:
            log.append("exit")

    async def main():
        async with managed() as n:
            return x + n

    return drive(main()), log


@scenario()
def coroutine_given_to_the_caller():
    async def coroutine(x, n):
        y = await doubled(x)
        return y + n

    def f(x):
        return coroutine(x + 1, 3)

    return Setup(f, lambda: (t(3),), after=lambda c: (drive(c), type(c).__name__, c.__name__))


@case(lambda: (t(3),), graphs=0, skip="*")
def asyncio_run(x):
    async def main():
        await asyncio.sleep(0)
        return x + 1

    return asyncio.run(main())


@scenario(skip="AsyncCode")
def compiled_async_function():
    async def f(x, n=2):
        y = await doubled(x)
        return y * n

    return Setup(f, lambda: (t(3),), after=lambda c: (drive(c), type(c).__name__, c.cr_code.co_name))


@scenario(skip="AsyncCode")
def compiled_async_generator():
    async def f(x):
        yield x + 1
        yield x + 2

    def after(g):
        async def main():
            return [y async for y in g]

        return drive(main())

    return Setup(f, lambda: (t(3),), after=after)


test_lang_async = cases.as_test(__name__)
