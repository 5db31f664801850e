"""The frames of a traceback show their variables, as a debugger looks at them after the fact."""

import traceback

import torch
from differ import Cases, Setup, t

cases = Cases()


def looked_at(error):
    """Function, line and variables of each frame behind the call."""
    return [
        (f.f_code.co_name, line, {k: v for k, v in f.f_locals.items() if not callable(v)})
        for f, line in traceback.walk_tb(error.__traceback__)
        if f.f_code.co_filename == __file__
    ]


def shown(fn, **expect):
    """The function returns the exception; what it shows is looked at outside."""
    cases.scenario(**expect)(_named(fn.__name__, lambda: Setup(fn, lambda: (t(3),), after=lambda result: looked_at(result[1]))))
    return fn


def _named(name, build):
    build.__name__ = name
    return build


def inner(v, k):
    w = v * 2
    names = ["a", (k, w)]
    table = {"k": k, "names": names}
    if k > 2:
        unbound = w
    del table["k"]
    raise ValueError(k)
    return unbound


@shown
def handled_far_away(x):
    y = x + 1
    try:
        inner(y, 2)
    except ValueError as error:
        y = y + 1
        return y, error


@shown
def changed_after_the_raise(x):
    seen, n = [], 1
    try:
        inner(x, n)
    except ValueError as error:
        n, kept = 5, error
        seen.append(n)
    n = n + len(seen)
    return x + n, kept


@shown
def through_cells(x):
    n = 3

    def deeper():
        m = n + 1

        def deepest():
            raise KeyError(m, x.shape)

        deepest()

    try:
        deeper()
    except KeyError as error:
        return x + n, error


@shown
def through_a_generator(x):
    def numbers(limit):
        for i in range(limit):
            yield i
        raise IndexError(limit)

    try:
        return x + sum(numbers(2)), None
    except IndexError as error:
        return x + 1, error


@shown
def thrown_into_a_generator_that_lets_it_pass(x):
    def turns():
        for j in range(3):
            try:
                yield j
            except KeyError:
                j -= 1

    g = turns()
    next(g)
    try:
        g.throw(ValueError(next(g)))
    except ValueError as error:
        g = "a generator is not made for the sake of a traceback"
        return x + 1, error


@shown
def twice_in_one_frame(x):
    try:
        try:
            inner(x, 1)
        except ValueError:
            first = "seen"
            raise
    except ValueError as error:
        second = first * 2
        return x + len(second), error


def escapes(fn, *args, **expect):
    """The exception leaves the compiled function and is looked at by the caller, who is not captured."""

    @torch._dynamo.disable
    def call(compiled, x):
        try:
            compiled(x, *args)
        except Exception as error:
            return looked_at(error)[1:]

    def build():
        return Setup(lambda x: (x + 1, call(lambda *given: fn(*given), x)), lambda: (t(3),))

    cases.scenario(**expect)(_named(fn.__name__, build))


def leaves_all_frames(x, k):
    y, names = x + 1, [k]
    inner(y, k)
    return names


def leaves_through_finally(x):
    y, log = x * 2, []
    try:
        with torch.no_grad():
            inner(y, 1)
    finally:
        log.append("finally")


def leaves_after_a_break(x):
    y = x * 2
    torch._dynamo.graph_break()
    z = y + 1
    raise ValueError(y.shape, z.shape)


def leaves_from_a_handler(x):
    try:
        inner(x, 1)
    except ValueError as error:
        try:
            kept = error.args
        finally:
            del x.nothing
        return kept


escapes(leaves_from_a_handler, skip="*")
escapes(leaves_all_frames, 3, skip="*")
escapes(leaves_through_finally, skip="*")
escapes(leaves_after_a_break, skip="*")

test_traceback_variables = cases.as_test(__name__)
