"""What random programs (make fuzz) found since they look like model code."""

import gc
import weakref

import torch
from differ import Cases, Setup, outcome, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


def aliased():
    x = t(3)
    return x, x[:]


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


@case(lambda: (t(3),))
def shape_of_what_is_made_of_a_reshaped_input(x):
    x.unsqueeze_(0)
    y = x * 2
    return y.shape, y, x.shape


@case(lambda: (t(3), t(3, grad=True)))
def gradients_of_what_is_made_of_a_written_input(x, y):
    x.add_(y)
    z = x * 2
    return z.requires_grad, z.is_leaf, z


@case(lambda: (*aliased(), t(3, grad=True)), skip="ViewMetadataChange")
def gradients_of_inputs_that_share_memory(x, view, y):
    x.add_(y)
    return view.requires_grad, x * 2, view + 1


@case(lambda: (t(3), torch.tensor([5]), []))
def reshaped_input_is_put_back(x, index, log):
    x.unsqueeze_(0)
    log.append(x.add_(1).shape)
    return x[:, index]


# ---- tracebacks --------------------------------------------------------------------------------------------------------


class Looked:
    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __getattr__(self, name):
        return name

    @property
    def failing(self):
        raise ValueError(1)


@case(lambda: (t(3), Looked()), skip="*")
def error_of_a_property_behind_both_hooks(x, looked):
    x = x + 1
    cdynamo.graph_break()
    return x, looked.missing, looked.failing


@case(lambda: (t(3),), skip="*")
def error_that_is_thrown_into_a_generator_at_its_start(x):
    def values():
        yield x

    y = x + 1
    cdynamo.graph_break()
    values().throw(ValueError(y.shape))


@case(lambda: (t(3), ValueError(1)), skip="ExceptionTraceback")
def existing_error_that_is_thrown_into_a_generator(x, error):
    def values():
        try:
            yield x + 1
        except KeyError:
            pass

    held = values()
    y = next(held)
    held.throw(error)
    return y


@case(lambda: (t(3),), skip="*")
def locals_that_die_with_a_generator(x):
    class Told:
        def __init__(self, log):
            self.log = log

        def __del__(self):
            self.log.append("gone")

    def turns(log):
        for j in range(2):
            held = Told(log)  # noqa: F841
            yield j

    log = []
    log.append([j for j in turns(log)])
    for j in turns(log):
        x = x + j
    log.append("after")
    return x, log


@case(lambda: (t(3),), skip="*")
def sent_to_before_it_began_and_after_a_break(x):
    def turns():
        yield 1
        yield 2

    held, log = turns(), []
    cdynamo.graph_break()
    for _ in range(2):
        try:
            held.send(1)
        except TypeError as error:
            log.append(error.args)
    return x + 1, log, list(held)


test_found7_fuzz = cases.as_test(__name__)
