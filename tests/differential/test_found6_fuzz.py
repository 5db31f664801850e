"""What random programs (make fuzz) found since their generator knows more of the language."""

import torch
from differ import Cases, Setup, outcome, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


def aliased():
    x = t(3)
    return x, x[:]


# ---- memory ------------------------------------------------------------------------------------------------------------


@case(aliased)
def looked_at_and_handed_back_beside_a_write(x, y):
    size = x.shape[0]
    y.add_(1)
    return x, y, size


@scenario()
def handed_back_and_overlapping_later():
    together = False

    def run(x, y):
        size = x.shape[0]
        y.add_(1)
        return x, y, size

    def change():
        nonlocal together
        together = True

    return Setup(run, lambda: aliased() if together else (t(3), t(3, seed=1)), changes=[change])


@case(lambda: (t(3), t(2)), skip="*")
def out_of_another_size(x, out):
    torch.mul(x, 2, out=out)
    return x + 1, out.shape, outcome(lambda: torch.mul(x, 2, out=x[1:]))


# ---- contexts of exceptions --------------------------------------------------------------------------------------------


def context_of(action):
    try:
        action()
    except Exception as error:
        return type(error), str(error), repr(error.__context__)


@case(lambda: (t(3),), skip="DataDependentBranch")
def end_of_a_generator_that_broke_in_a_handler(x):
    def items():
        if x.sum() < 0.0:
            yield 1
        yield from []

    def advance():
        try:
            raise KeyError(2)
        except KeyError:
            next(items())

    return x * 2, context_of(advance)


@case(lambda: (t(3),), skip="UserBreak")
def raised_behind_a_handler_that_broke(x):
    try:
        raise KeyError(3)
    except KeyError:
        cdynamo.graph_break()

    def fails():
        try:
            int("q")
        finally:
            x.add_(1)

    return x * 2, context_of(fails), outcome(lambda: {}["a"])


@scenario()
def called_where_an_exception_is_handled():
    def run(x):
        return x * 2, context_of(lambda: int("q")), context_of(lambda: [].pop())

    def handles(x):
        try:
            raise KeyError(4)
        except KeyError:
            return run(x)

    return Setup(handles, lambda: (t(3),))


class Counter:
    def __init__(self):
        self.count = 0


@scenario(captures=(1, 1), after_change=(None, None, None))
def a_number_in_a_local_class_beside_another():
    counter, state = Counter(), {"n": 1}

    def fn(x, n):
        class Local:
            limit = n

        counter.count += 1
        return x + counter.count, Local.limit, counter.count

    changes = [lambda: state.update(n=2), lambda: state.update(n=3), lambda: state.update(n=3)]
    return Setup(fn, lambda: (t(3), state["n"]), watch=lambda: counter.count, changes=changes)


@scenario(captures=())
def a_write_that_autograd_forbids():
    seen, total = [], torch.zeros(3)

    def fn(x, y):
        seen.append("before")
        total.add_(1)
        y.add_(1.25)
        return x

    def args():
        x = t(3, grad=True)
        return (x, x[:])

    return Setup(fn, args, watch=lambda: (list(seen), total.clone()))


test_found6_fuzz = cases.as_test(__name__)
