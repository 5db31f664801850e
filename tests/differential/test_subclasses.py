"""Tensor subclasses with __torch_function__, torch-function modes, attributes that users put on tensors."""

from __future__ import annotations

import torch
from differ import Cases, Setup, t
from torch.overrides import TorchFunctionMode

cases = Cases()
case, scenario = cases.case, cases.scenario


class Plain(torch.Tensor):
    pass


class Logged(torch.Tensor):
    seen: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Logged.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


class Scaled(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_function__(func, types, args, kwargs or {})
        return out * 10 if func in (torch.add, torch.Tensor.add) else out

    @property
    def twice(self):
        return self * 2

    def plus(self, k):
        return self + k


class Quiet(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    def plus(self, k):
        return self + k


def sub(cls, *shape, **more):
    return t(*shape, **more).detach().as_subclass(cls)


# ---- classes of results ------------------------------------------------------------------------------------------------


@case(lambda: (sub(Plain, 2, 3),))
def results_keep_the_class(x):
    return x * 2 + 1, x.sin().sum(), x[0], -x, x == 2, x.shape, type(x), isinstance(x, Plain), x.max(0)


@case(lambda: (sub(Plain, 2, 3),))
def functions_keep_the_class(x):
    return torch.cat([x, x]), torch.nn.functional.relu(x), x.split(1), 1 - x, 2 * x, x @ x.t(), torch.add(x, 1), torch.stack([x, x.float()])


@case(lambda: (sub(Plain, 2, 3), t(2, 3)))
def mixed_with_plain_tensors(x, y):
    return x + y, y + x, torch.where(y > 0.5, x, y), y * 2


@case(lambda: ([sub(Plain, 3), sub(Plain, 3)],))
def list_of_a_subclass(xs):
    return torch.stack(xs), torch.cat(tuple(xs))


@case(lambda: (sub(Plain, 3),))
def in_place(x):
    x += 1
    x.mul_(2)
    x[0] = 5
    return x


@case(lambda: (sub(Scaled, 3),), ops=["add", "mul", "mul", "add", "mul", "sin"])
def own_function(x):
    return torch.add(x, 1), x.twice, x.plus(2), x.sin()


@case(lambda: (sub(Quiet, 3),), ops=["add", "mul", "mul"])
def function_disabled(x):
    return x.plus(1), x * 2, type(x * 2)


@case(lambda: (t(3),))
def made_inside(x):
    y = x.as_subclass(Scaled)
    return y + torch.ones(3), y, type(y)


@case(lambda: (sub(Scaled, 3),), ops=["add"])
def switched_off(x):
    with torch._C.DisableTorchFunctionSubclass():
        y = x + 1
    return y, type(y)


@scenario()
def every_call_is_seen_once():
    def f(x):
        return (x + 1) * x.sum(), len(x), x.shape[0], x.dtype

    def args():
        x = sub(Logged, 3)
        Logged.seen.clear()
        return (x,)

    return Setup(f, args, watch=lambda: list(Logged.seen))


@scenario(after_change=(1, 1))
def class_is_guarded():
    kind = [Plain]

    def change(cls):
        kind[0] = cls

    return Setup(lambda x: torch.add(x, 1), lambda: (sub(kind[0], 3),), changes=[lambda: change(Scaled), lambda: change(torch.Tensor)])


@scenario(after_change=(1,))
def function_is_guarded():
    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    def other(cls, func, types, args=(), kwargs=None):
        out = super(Own, cls).__torch_function__(func, types, args, kwargs or {})
        return out + 1 if func is torch.Tensor.mul else out

    def change():
        Own.__torch_function__ = classmethod(other)

    return Setup(lambda x: x * 2, lambda: (sub(Own, 3),), changes=[change])


@scenario()
def gradients():
    x = t(3, grad=True)
    y = x.as_subclass(Scaled)
    return Setup(lambda a: (a.sin() + 1) * a, lambda: (y,), watch=lambda: x.grad, after=lambda out: out.sum().backward(retain_graph=True))


class Wrapped:
    """Not a tensor at all."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.value if isinstance(a, Wrapped) else a for a in args]
        return Wrapped(func(*plain, **(kwargs or {})))


@case(lambda: (t(3),), ops=["add", "cat"])
def other_objects(x):
    w = Wrapped(x)
    return torch.add(w, 1).value, torch.cat([x, x])


class First(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented if func in (torch.add, torch.mul) else super().__torch_function__(func, types, args, kwargs or {})


class Second(First):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
        return out * len(types) if func in (torch.add, torch.mul) else out


@case(lambda: (sub(First, 3), sub(Second, 3)))
def order_of_classes(x, y):
    return torch.add(x, y), torch.mul(y, x)


@case(lambda: (sub(Plain, 3),), skip="UserBreak")
def break_with_a_subclass(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


# ---- attributes of tensors ---------------------------------------------------------------------------------------------


@case(lambda: (t(3), t(3)))
def attributes_of_arguments(x, y):
    x.scale = 3
    x.other = y
    x.made = y * 2
    return x * x.scale + x.other, x.made, hasattr(x, "none")


@scenario(after_change=(1,))
def attribute_of_an_argument_is_guarded():
    x = t(3)
    x.scale = 2

    def change():
        x.scale = 4

    return Setup(lambda a: a * a.scale, lambda: (x,), changes=[change])


@scenario(after_change=(1,))
def attribute_that_appears():
    x = t(3)

    def change():
        x.scale = 4

    return Setup(lambda a: a * getattr(a, "scale", 2), lambda: (x,), changes=[change])


@case(lambda: (t(3),))
def attributes_of_results(x):
    y = x * 2
    y.scale = 3
    z = y
    z.scale += 1
    return y, z.scale


# ---- modes -------------------------------------------------------------------------------------------------------------


class Swap(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        return torch.sub(*args, **kwargs) if func is torch.add else func(*args, **kwargs)


class Shift(TorchFunctionMode):
    def __init__(self, by):
        self.by = by

    def __torch_function__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out + self.by if func is torch.sin else out


@case(lambda: (t(3),), ops=["sub", "ones", "add"])
def mode_inside(x):
    with Swap():
        y = torch.add(x, 1), torch.ones(3)
    return y, torch.add(x, 1)


@case(lambda: (t(3),))
def modes_inside_each_other(x):
    with Swap(), Shift(3):
        y = torch.sin(torch.add(x, 1))
        with Shift(torch.ones(3)):
            z = torch.sin(y)
    return y, z


@case(lambda: (sub(Plain, 3),))
def mode_and_subclass(x):
    with Swap():
        return torch.add(x, 1), x * 2


@case(lambda: (t(3),))
def mode_switched_off(x):
    with Swap():
        with torch._C.DisableTorchFunction():
            y = torch.add(x, 1)
        with torch._C.DisableTorchFunctionSubclass():
            z = torch.add(x, 1)
    return y, z


@case(lambda: (t(3),))
def mode_left_by_an_exception(x):
    try:
        with Swap():
            raise ValueError
    except ValueError:
        return torch.add(x, 1)


@case(lambda: (t(3),), skip="UserBreak")
def break_in_a_mode(x):
    with Swap():
        y = torch.add(x, 1)
        torch._dynamo.graph_break()
        return torch.add(y, 2)


def around(mode, function, **more):
    """A world where a mode is active around each call of the captured function."""
    active = []

    def args():
        if not active:
            active.append(mode())
            active[0].__enter__()
        return (t(3),)

    def cleanup():
        while active:
            active.pop().__exit__(None, None, None)

    return Setup(function, args, cleanup=cleanup, **more)


@scenario(ops=["sub", "mul"])
def mode_around():
    return around(Swap, lambda x: torch.add(x, 1) * 2)


@scenario(ops=["sin", "add"])
def attribute_of_a_mode_around():
    return around(lambda: Shift(2), lambda x: torch.sin(x))


@scenario()
def mode_around_and_inside():
    def f(x):
        with Swap():
            return torch.sin(torch.add(x, 1))

    return around(lambda: Shift(2), f)


@scenario(skip="UserBreak")
def break_under_a_mode():
    def f(x):
        y = torch.add(x, 1)
        torch._dynamo.graph_break()
        return torch.add(y, 2)

    return around(Swap, f)


@scenario()
def default_device():
    return around(lambda: torch.device("cpu"), lambda x: torch.ones(3) + x)


test_subclasses = cases.as_test(__name__)
