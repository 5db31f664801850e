"""What random programs (make fuzz) have found wrong after breaks: each case broken at every nth instruction, for all n that the programs use."""

import gc
import weakref

import pytest
from differ import Cases, Setup, t
from test_break_stress import check_broken

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario
STEPS = (1, 2, 3, 5, 9, 14)


def with_arguments(function, *arguments):
    """The function called twice with what the first factory makes, then once with what each of the others makes."""
    which = 0

    def change():
        nonlocal which
        which += 1

    return Setup(function, lambda: arguments[which](), changes=[change] * (len(arguments) - 1))


# ---- exceptions that pass frames of an earlier trace --------------------------------------------------------------------


@case(lambda: (t(3), [3, 1, 2], 2))
def strict_zip_raises_in_a_comprehension(x, items, n):
    def counted(n):
        for i in range(n):
            yield i + 0

    y = x * 2
    made = [lambda a, z=z: a + z for z in ([p - q for p, q in zip(items, counted(n), strict=True)] * 2)[:3]]
    return y, [c(n) for c in made]


@scenario()
def tensor_error_in_a_generator():
    def run(x, y):
        v = x * 2 + 1

        def steps(count=3):
            for _ in range(count):
                w = ((v + v) + (v + v)) + ((v + v) + (v + y))
                yield w

        return list(steps())

    return with_arguments(run, lambda: (t(3), t(3, seed=1)), lambda: (t(4), t(3, seed=1)))


# ---- what is guarded about what an iterator goes over --------------------------------------------------------------------


@scenario()
def iterator_over_another_kind_of_sequence():
    def run(x, items):
        own = [1, 2, 3]
        made = set([p - q for p, q in zip(own, items)]) | {1, 2}  # noqa: C403
        return x * len(made), made

    return with_arguments(
        run, lambda: (t(3), [3, 1, 2]), lambda: (t(3), (1, 2)), lambda: (t(3), {1: 2, 3: 4}), lambda: (t(3), {5, 6}), lambda: (t(3), "ab")
    )


# ---- cells, and what dies ------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def unbound_cell_is_a_local_variable(x):
    def inner():
        return late

    def failing(use):
        try:
            return use()
        except NameError as error:
            return type(error), str(error)

    y = x * 2
    first = failing(inner)
    try:
        late += 1  # noqa: F821
    except UnboundLocalError as error:
        second = str(error)
    try:
        del late
    except UnboundLocalError as error:
        third = str(error)
    late = 3
    return y, first, second, third, inner(), sorted(locals())


@scenario()
def generator_is_closed_when_its_frame_ends():
    log = []

    def run(x):
        def steps(count):
            try:
                for i in range(count):  # noqa: UP028
                    yield i
            finally:
                log.append("closed")

        made = steps(3)
        next(made)
        log.append(made.send(2))
        log.append("end")
        return x * 2

    return Setup(run, lambda: (t(3),), watch=lambda: list(log))


@scenario()
def generator_inside_a_zip_is_closed_with_it():
    log = []

    def steps(count):
        yield from range(count)
        try:
            yield 10
        finally:
            log.append("closed")

    def run(x, items, n):
        log.append([p - q for p, q in zip(items, steps(n))])
        log.append("after the comprehension")
        for _ in zip(items, steps(n)):
            pass
        log.append("after the loop")
        log.append(list(zip(items, enumerate(steps(n)))))
        log.append("after list()")
        return x * 2

    return Setup(run, lambda: (t(3), [3, 1, 2], 2), watch=lambda: list(log))


class Dynamic:
    def __getattr__(self, name):
        if name.startswith("dyn"):
            return len(name)
        raise AttributeError(name)


@case(lambda: (t(3), Dynamic()))
def attribute_error_names_the_attribute(x, o):
    return x * o.dyn_a, o.missing


@scenario()
def exceptions_make_no_cycles():
    class Note:
        pass

    def inner(note):
        held = note
        cdynamo.graph_break()
        raise ValueError(held is note)

    def run(x):
        gc.disable()
        try:
            note = Note()
            seen = weakref.ref(note)
            try:
                inner(note)
            except ValueError as error:
                text = str(error)
            del note
            return x * 2, text, seen() is None
        finally:
            gc.enable()

    return Setup(run, lambda: (t(3),))


@pytest.mark.parametrize("every", STEPS)
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in cases.cases])
def test_broken(case, every):
    with cdynamo.config.patch(strict=True, break_every=every, recompile_limit=64):
        check_broken(case)
