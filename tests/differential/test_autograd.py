"""torch.autograd inside of captured functions: Function, checkpoints, hooks."""

from __future__ import annotations

import warnings

import torch
from differ import Cases, Setup, t
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

cases = Cases()
case, scenario = cases.case, cases.scenario


def trained(fn, *shapes, **more):
    """A world where fn is called with leaves, its result is summed and taken backward, and the gradients are looked at."""
    leaves = [t(*shape, seed=i, grad=True) for i, shape in enumerate(shapes)]

    def backward(out):
        outs = [o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, torch.Tensor) and o.requires_grad]
        sum(((i + 1) * o).sum() for i, o in enumerate(outs)).backward()
        return [x.grad for x in leaves], [o.grad_fn.name() if o.grad_fn else None for o in outs]

    return Setup(fn, lambda: tuple(leaves), watch=lambda: [x.grad for x in leaves], after=backward, **more)


class Scale(Function):
    @staticmethod
    def forward(ctx, x, k=2):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * k

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.k * x.cos(), None


@scenario(ops=["sin", "autograd_function_apply", "getitem", "mul"])
def function_with_constant():
    return trained(lambda x: Scale.apply(x.sin(), 3) * 2, (3,))


class Linear(Function):
    @staticmethod
    def forward(x, weight, bias=None):
        out = x @ weight.t()
        return out if bias is None else out + bias

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, bias = inputs
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        gx = grad @ weight if ctx.needs_input_grad[0] else None
        gw = grad.t() @ x if ctx.needs_input_grad[1] else None
        return gx, gw, grad.sum(0) if ctx.has_bias else None


@scenario()
def setup_context():
    return trained(lambda x, w, b: Linear.apply(x, w, b), (2, 3), (4, 3), (4,))


@scenario()
def setup_context_with_default():
    return trained(lambda x, w: Linear.apply(x, w), (2, 3), (4, 3))


# Before 2.13 torch refuses them.
@scenario(**({"graphs": 0, "captures": ()} if torch.__version__ < "2.13" else {}))
def setup_context_with_keyword():
    return trained(lambda x, w: Linear.apply(x, weight=w), (2, 3), (4, 3))


@scenario(after_change=(1,))
def needs_input_grad_is_guarded():
    x, w = t(2, 3, grad=True), t(4, 3, seed=2, grad=True)

    def backward(out):
        out.sum().backward()
        return x.grad, w.grad

    return Setup(lambda a, b: Linear.apply(a, b), lambda: (x, w), after=backward, changes=[lambda: x.requires_grad_(False)])


class Two(Function):
    @staticmethod
    def forward(ctx, x, y):
        top = x.exp()
        ctx.save_for_backward(top, y)
        ctx.count = 2
        return top, x + y, "text", 7

    @staticmethod
    def backward(ctx, g0, g1, *others):
        top, y = ctx.saved_tensors
        assert others == (None, None)
        return g0 * top + g1, g1 * ctx.count * y


@scenario()
def several_results():
    return trained(lambda x, y: Two.apply(x, y), (3,), (3,))


@scenario()
def one_result_unused():
    return trained(lambda x, y: Two.apply(x, y)[0], (3,), (3,))


@scenario()
def same_argument_twice():
    return trained(lambda x: Two.apply(x, x)[:2], (3,))


@case(lambda: (t(3, grad=True),))
def under_no_grad(x):
    with torch.no_grad():
        return Scale.apply(x)


@case(lambda: (t(3),), ops=["_set_grad_enabled", "mul", "_set_grad_enabled"])
def without_gradient(x):
    y = Scale.apply(x)
    return y, y.requires_grad, torch.is_grad_enabled()


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 5


@scenario()
def argument_returned():
    return trained(lambda x: Identity.apply(x), (3,))


@case(lambda: (t(3),))
def argument_returned_without_gradient(x):
    y = Identity.apply(x)
    return y, y is x


class Round(Function):
    @staticmethod
    def forward(ctx, x):
        rounded = x.round()
        where = rounded.long()
        ctx.mark_non_differentiable(rounded, where)
        return x * 2, rounded, where

    @staticmethod
    def backward(ctx, grad, g1, g2):
        return grad + g1


@scenario()
def non_differentiable():
    return trained(lambda x: Round.apply(x * 3), (3,))


@scenario()
def requires_grad_of_results():
    def f(x):
        a, b, c = Round.apply(x)
        return a, a.requires_grad, b.requires_grad, c.requires_grad, a.is_leaf, b.is_leaf

    return trained(f, (3,))


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 7


@scenario()
def dirty():
    def f(x):
        y = x * 3
        z = InPlace.apply(y)
        return y + z, z is y

    return trained(f, (3,))


@scenario()
def dirty_without_gradient():
    return Setup(lambda x: (InPlace.apply(x) is x, x + 1), lambda: (t(3),))


class Undefined(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g0, g1):
        return (g0 if g1 is None else g0 + g1) * (10 if g1 is None else 1)


@scenario(skip="AutogradFunction")
def gradients_not_materialized():
    return trained(lambda x: Undefined.apply(x)[0] + 1, (3,))


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0].cos()


@scenario()
def once():
    return trained(lambda x: Once.apply(x), (3,))


def twice_differentiated(function):
    x = t(3, grad=True)

    def after(out):
        (first,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        try:
            return first, torch.autograd.grad(first.sum(), x)
        except RuntimeError as error:
            return first, str(error)

    return Setup(lambda a: function.apply(a), lambda: (x,), after=after)


@scenario()
def second_derivative():
    return twice_differentiated(Cube)


@scenario()
def second_derivative_refused():
    return twice_differentiated(Once)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return 3 * ctx.saved_tensors[0] ** 2 * grad


@scenario()
def changed_after_it_was_saved():
    x = t(3, grad=True)

    def after(out):
        try:
            out.sum().backward()
        except RuntimeError as error:
            return str(error)[:60]

    def f(a):
        b = a * 2
        c = Cube.apply(b)
        b.add_(1)
        return c

    return Setup(f, lambda: (x,), after=after)


class Outer(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = Scale.apply(x, 4)
        return ctx.y.sin()

    @staticmethod
    def backward(ctx, grad):
        return Scale.apply(grad, 5) * ctx.y


@scenario()
def nested():
    return trained(lambda x: Outer.apply(x), (3,))


@scenario()
def uses_a_tensor_from_outside():
    w = t(3, seed=5, grad=True)

    class Closed(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * w

        @staticmethod
        def backward(ctx, grad):
            return grad * w * ctx.saved_tensors[0]

    x = t(3, grad=True)
    return Setup(lambda a: Closed.apply(a), lambda: (x,), watch=lambda: (x.grad, w.grad), after=lambda out: out.sum().backward())


@scenario(skip="AutogradFunction")
def effects_in_backward():
    seen = []

    class Seen(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            seen.append(len(seen))
            return grad * 3

    x = t(3, grad=True)
    return Setup(lambda a: Seen.apply(a) + 1, lambda: (x,), watch=lambda: (x.grad, seen), after=lambda out: out.sum().backward())


@scenario(skip="AutogradFunction")
def effects_in_forward():
    seen = []

    class Seen(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            seen.append(y)
            return y + 1

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x = t(3, grad=True)
    return Setup(lambda a: Seen.apply(a) + 1, lambda: (x,), watch=lambda: (x.grad, seen), after=lambda out: out.sum().backward())


@scenario(skip="AutogradFunction")
def exception_in_forward():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            raise ValueError("no")

    def f(x):
        try:
            return Bad.apply(x)
        except ValueError as error:
            return x * 2, str(error)

    return trained(f, (3,))


@scenario(after_change=(1, 0))
def constants_of_the_context_are_guarded():
    class Config:
        factor = 2

    class Factor(Function):
        @staticmethod
        def forward(ctx, x):
            return x * Config.factor

        @staticmethod
        def backward(ctx, grad):
            return grad * Config.factor * 10

    def change(value):
        Config.factor = value

    return trained(lambda x: Factor.apply(x), (3,), changes=[lambda: change(3), lambda: change(4)])


@scenario()
def gradient_in_another_layout():
    class Flat(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.contiguous().view(-1).flip(0).view(grad.shape), None

    x = t(2, 3, grad=True)
    return Setup(lambda a: Flat.apply(a), lambda: (x,), after=lambda out: (out.t() * t(3, 2, seed=4)).sum().backward(), watch=lambda: x.grad)


@scenario()
def in_a_module():
    class Gate(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(t(3, seed=3))

        def forward(self, x):
            return Two.apply(x, self.weight)[0]

    m = Gate()
    return Setup(lambda x: m(x), lambda: (t(3, grad=True),), watch=lambda: m.weight.grad, after=lambda out: out.sum().backward())


# ---- checkpoints -------------------------------------------------------------------------------------------------------


def block():
    lin = torch.nn.Linear(3, 3)
    with torch.no_grad():
        lin.weight.copy_(t(3, 3, seed=8)), lin.bias.fill_(0.1)
    return lin


def checkpointed_world(fn, lin, *shapes):
    world = trained(fn, *shapes)
    return Setup(fn, world.args, watch=lambda: (world.watch(), lin.weight.grad, lin.bias.grad), after=world.after)


@scenario(ops=["tag_activation_checkpoint", "getitem", "sum"])
def checkpoint_of_a_module():
    lin = block()
    return checkpointed_world(lambda x: checkpoint(lin, x, use_reentrant=False).sum(), lin, (2, 3))


@scenario(ops=["tag_activation_checkpoint", "getitem", "sum"])
def checkpoint_reentrant():
    lin = block()
    return checkpointed_world(lambda x: checkpoint(lambda a: lin(a).sin(), x, use_reentrant=True).sum(), lin, (2, 3))


@scenario()
def checkpoint_with_dropout():
    lin = block()
    return checkpointed_world(lambda x: checkpoint(lambda a: torch.dropout(lin(a), 0.5, True), x, use_reentrant=False), lin, (2, 3))


@scenario()
def checkpoint_with_structures():
    lin = block()

    def part(pair, *, scale):
        return {"a": lin(pair[0]) * scale, "rest": [pair[1].sin(), 3]}, pair[1]

    def f(x, y):
        out, same = checkpoint(part, (x, y), scale=2, use_reentrant=False)
        return out["a"], out["rest"][0], same is y, out["rest"][1]

    return checkpointed_world(f, lin, (2, 3), (2, 3))


@scenario()
def checkpoints_in_a_row():
    lin = block()

    def f(x):
        for _ in range(3):
            x = checkpoint(lin, x, use_reentrant=False)
        return x

    return checkpointed_world(f, lin, (2, 3))


@scenario()
def checkpoint_in_a_checkpoint():
    lin = block()
    inner = lambda x: checkpoint(lin, x.sin(), use_reentrant=False).cos()  # noqa: E731
    return checkpointed_world(lambda x: checkpoint(inner, x, use_reentrant=False), lin, (2, 3))


@scenario()
def checkpoint_of_a_function_with_gradient():
    return trained(lambda x: checkpoint(lambda a: Scale.apply(a, 3).sin(), x, use_reentrant=False), (3,))


@scenario()
def checkpoint_of_a_sequence():
    lin = block()
    return checkpointed_world(lambda x: checkpoint_sequential([lin, torch.sin, lin], 2, x, use_reentrant=False), lin, (2, 3))


@case(lambda: (t(3),))
def checkpoint_without_gradient(x):
    return checkpoint(torch.sin, x, use_reentrant=False)


@case(lambda: (t(3, grad=True),))
def checkpoint_under_no_grad(x):
    with torch.no_grad():
        return checkpoint(torch.sin, x, use_reentrant=True)


@scenario(skip="Checkpoint")
def checkpoint_with_effects():
    seen = []

    def part(x):
        seen.append(1)
        return x.sin()

    x = t(3, grad=True)
    return Setup(
        lambda a: checkpoint(part, a, use_reentrant=False) + 1, lambda: (x,), watch=lambda: (x.grad, seen), after=lambda out: out.sum().backward()
    )


@scenario(skip="*")
def checkpoint_reentrant_without_gradient():
    lin = block()

    def f(x):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return checkpoint(lin, x, use_reentrant=True) + 1

    return Setup(f, lambda: (t(2, 3),))


# ---- hooks of tensors --------------------------------------------------------------------------------------------------


@scenario(ops=["sin", "register_hook", "mul"])
def hook_of_an_intermediate():
    def f(x):
        y = x.sin()
        y.register_hook(lambda g: g * 5)
        return y * 2

    return trained(f, (3,))


@scenario()
def hook_with_a_closure():
    def f(x, w):
        y = x.sin()
        y.register_hook(lambda g: g * w + y)
        return y * w

    return trained(f, (3,), (3,))


@scenario()
def hook_that_changes_nothing():
    def f(x):
        y = x.sin()
        y.register_hook(lambda g: None)
        return y * 2

    return trained(f, (3,))


@scenario()
def hook_of_an_argument():
    def f(x):
        x.register_hook(lambda g: g + 1)
        return x * 2

    x = t(3, grad=True)

    def after(out):
        out.sum().backward()
        x._backward_hooks.clear()
        return x.grad

    return Setup(f, lambda: (x,), after=after)


@scenario()
def hook_with_handle():
    x = t(3, grad=True)

    def f(a):
        handle = a.register_hook(lambda g: g * 3)
        return a * 2, handle

    def after(out):
        out[0].sum().backward()
        out[1].remove()
        before = x.grad.clone()
        (x * 2).sum().backward()
        return before, x.grad, out[1].id in x._backward_hooks

    world = Setup(lambda a: f(a), lambda: (x,), after=lambda out: after(out))
    return Setup(lambda a: Handle(*f(a)), world.args, after=lambda out: after((out.value, out.handle)))


class Handle:
    """Keeps a handle, whose number differs from world to world, from being compared."""

    __slots__ = ("value", "__weakref__")
    handles: list = []

    def __init__(self, value, handle):
        self.value = value
        Handle.handles.append(handle)

    @property
    def handle(self):
        return Handle.handles[-1]


@scenario(skip="AutogradMethod")
def hook_of_an_intermediate_that_is_removed():
    def f(x):
        y = x.sin()
        handle = y.register_hook(lambda g: g * 5)
        z = y * 2
        handle.remove()
        return z

    return trained(f, (3,))


@scenario(skip="AutogradMethod")
def hook_with_effects():
    seen = []

    def f(x):
        y = x.sin()
        y.register_hook(lambda g: seen.append(g))
        return y * 2

    x = t(3, grad=True)
    return Setup(f, lambda: (x,), watch=lambda: (x.grad, seen), after=lambda out: out.sum().backward())


@scenario()
def hook_after_accumulation():
    p = t(3, grad=True)

    def zero(x):
        x.grad = None

    def f(x):
        p.register_post_accumulate_grad_hook(zero)
        return x * p

    return Setup(f, lambda: (t(3),), watch=lambda: p.grad, after=lambda out: out.sum().backward())


@case(lambda: (t(3),))
def hook_without_gradient(x):
    try:
        (x * 2).register_hook(lambda g: g)
    except RuntimeError as error:
        return x + 1, str(error)


def view_without_grad(x):
    with torch.no_grad():
        return x.t()


@scenario()
def argument_is_a_view_made_without_grad():
    x, w = t(2, 3, grad=True), t(4, 3, grad=True)

    def f(a, b):
        with torch.no_grad():
            return a @ b, b.requires_grad

    return Setup(f, lambda: (x, view_without_grad(w)))


@scenario()
def grad_of_a_parameter_is_set():
    p, q = t(3, grad=True), t(3, seed=1, grad=True)
    p.grad, q.grad = t(3, seed=2), None

    def f(x):
        p.grad = p.grad * 2 + x
        q.grad = x
        p.grad.mul_(3)
        return x + 1, q.grad is x

    return Setup(f, lambda: (t(3),), watch=lambda: (p.grad, q.grad))


@scenario()
def grad_of_a_parameter_is_dropped():
    lin = torch.nn.Linear(3, 3)
    with torch.no_grad():
        lin.weight.fill_(0.5), lin.bias.fill_(0.1)
    for p in lin.parameters():
        p.grad = torch.ones_like(p)

    def f(x):
        lin.zero_grad()
        return lin(x), lin.weight.grad is None

    return Setup(f, lambda: (t(2, 3),), watch=lambda: [p.grad for p in lin.parameters()], after=lambda out: out[0].sum().backward())


@scenario(skip="TensorAttributeWrite")
def grad_of_another_shape():
    p = t(3, grad=True)

    def f(x):
        y = x + 1
        try:
            p.grad = y
        except RuntimeError as error:
            return y, str(error)

    return Setup(f, lambda: (t(2),), watch=lambda: p.grad)


# ---- other work on gradients -------------------------------------------------------------------------------------------


@scenario(skip="*")
def gradient_inside():
    def f(x):
        (g,) = torch.autograd.grad((x.sin() * 2).sum(), x)
        return g + 1

    return Setup(f, lambda: (t(3, grad=True),))


@scenario(skip="AutogradMethod")
def backward_inside():
    def f(x):
        (x.sin() * 2).sum().backward()
        return x.grad * 2

    return Setup(f, lambda: (t(3, grad=True),))


test_autograd = cases.as_test(__name__)
