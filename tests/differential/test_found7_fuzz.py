"""What random programs (make fuzz) found since they look like model code."""

import gc
import weakref

import torch
from differ import Cases, Setup, outcome, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- lifetimes ---------------------------------------------------------------------------------------------------------


@scenario(skip="*")
def bound_slots_are_not_kept():
    class Held:
        pass

    @cdynamo.disable
    def method(held):
        return held.__init__

    def run(x):
        held = Held()
        alive = weakref.ref(held)
        init = method(held)
        init()
        y = x + 1
        del held, init
        gc.collect()
        return y, alive() is None

    return Setup(run, lambda: (t(3),))


@scenario(skip="*")
def cells_go_with_the_cleared_frame():
    class Held:
        pass

    seen = []

    def run(x):
        held = Held()
        seen.append(weakref.ref(held))

        def reads():
            return held

        cdynamo.graph_break()
        raise ValueError(reads() is held)

    return Setup(run, lambda: (t(3),), watch=lambda: [alive() is None for alive in seen])


# ---- memory ------------------------------------------------------------------------------------------------------------


@scenario(skip="*")
def errors_of_a_write_to_what_overlaps():
    x = t(3)
    others = [x[None], x[1:], t(2), t(2)]

    def run(x, y):
        size = x.shape[0]
        said = [outcome(lambda: x.copy_(y)), outcome(lambda: torch.mul(x, y, out=x)), outcome(lambda: x.__iadd__(y))]
        return said, size, x + 1

    def change():
        others.pop(0)

    return Setup(run, lambda: (x, others[0]), changes=[change, change, change])


@case(lambda: (t(3), t(3, 3)), graphs=3, captures=(3, 0))
def resized_only_where_it_runs(x, y):
    return x + 1, outcome(lambda: x.clamp_(max=y))


test_found7_fuzz = cases.as_test(__name__)
