"""Texts, errors and NumPy's functions of constants, as a reviewer of the issue's lists tried them."""

import contextvars

import numpy as np
import torch
from differ import Cases, Setup, outcome, t
from torch import nn

cases = Cases()
case, scenario = cases.case, cases.scenario


@case(lambda: (t(2, 2),))
def tensor_alone_after_percent(x):
    return x + 1, "%s" % x, "sum: %s" % x.sum(), "%s and %s" % (x, 1)


@case(lambda: (t(3),))
def shapes_through_numpy(x):
    n = int(np.prod(x.shape))
    return x * n, np.prod(x.shape[1:]), np.mean([1, 2]), np.sum([1, 2]), np.max([3, 1]), np.mean([1.5, 2], dtype=np.float32), np.cumsum([1, 2])


@case(lambda: (t(3),))
def small_arrays_of_constants(x):
    return x + 1, np.linspace(0, 0.1, 4), np.concatenate([[1], [2]]), np.tile([1], 3), np.stack([[1, 2], [3, 4]])


@case(lambda: (t(3),))
def items_of_numpy_scalars(x):
    return x * np.float32(3).item(), np.int64(7).item(), np.float64(2.7).astype(np.int32), np.float64(2.567).round(1)


@case(lambda: (t(3), np.float32(2.5), np.float64(3), np.int64(2)))
def numpy_scalars_on_the_left(x, a, b, c):
    return a * x, b + x, c - x, b / x, a < x, c**x, c // x, b == x, c % x, type(a * 2)


@case(lambda: (t(3),), skip="UnknownFunction")
def numpy_that_warns_does_so_in_each_call(x):
    return x + 1, np.log(0.0)


@case(lambda: (t(3),))
def attributes_of_constants_are_refused(x):
    def number():
        v = 1
        v.foo = 2

    def text():
        s = "a"
        del s.foo

    def method():
        s = "a"
        s.upper = 2

    def read_only():
        n = 3
        n.real = 3

    return x + 1, [outcome(f) for f in (number, text, method, read_only)]


@case(lambda: (t(3),))
def operators_between_containers_are_refused(x):
    actions = (
        lambda: [1] + (1,), lambda: (1,) + [1], lambda: {} | [1], lambda: {1} | [1], lambda: {1} - [1], lambda: [1] - [1], lambda: "a" + [1],
        lambda: [x] + "a", lambda: [x] * 1.5, lambda: 1 + [x], lambda: [x] % 2, lambda: {} + {}, lambda: (x,) + 1, lambda: [x] ** 2,
    )  # fmt: skip
    return x + 1, [outcome(f) for f in actions]


@case(lambda: (t(3),))
def join_names_what_it_takes(x):
    return x + 1, [outcome(f) for f in (lambda: "a".join(1), lambda: ",".join(None), lambda: ",".join([1]), lambda: ",".join(x.shape))]


@scenario(after_change=(1, 1, 0, 1))
def context_variable_is_read():
    scale, unset = contextvars.ContextVar("scale", default=2), contextvars.ContextVar("unset")

    def f(x):
        return x * scale.get() + unset.get(1), scale.name, outcome(lambda: unset.get() is None)[0] if unset.get(None) is None else unset.get()

    return Setup(f, lambda: (t(3),), watch=scale.get, changes=[*(lambda n=n: scale.set(n) for n in (5, 6, 7)), lambda: unset.set(t(3))])


@scenario(skip="UnknownFunction")
def context_variable_is_set_and_reset():
    scale = contextvars.ContextVar("scale", default=2)

    def f(x):
        token = scale.set(scale.get() + 1)
        try:
            return x * scale.get()
        finally:
            scale.reset(token)

    return Setup(f, lambda: (t(3),), watch=scale.get, changes=[lambda: scale.set(5)])


@scenario()
def gradients_clipped_by_norm():
    import torch.distributed.tensor  # noqa: F401  (changes lists that the function reads)

    torch.manual_seed(0)
    layer = nn.Linear(3, 3)

    def args():
        layer.weight.grad, layer.bias.grad = torch.ones(3, 3), torch.ones(3)
        return (t(2, 3),)

    def f(x):
        norm = nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        nn.utils.clip_grad_value_(layer.parameters(), 0.1)
        return layer(x), norm, nn.utils.parameters_to_vector(layer.parameters())

    return Setup(f, args, watch=lambda: (layer.weight.grad.clone(), layer.bias.grad.clone()))


test_lists7_library = cases.as_test(__name__)
