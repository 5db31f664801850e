"""torch.nn's own library: containers, utilities, parametrizations, hooks, functional calls, scripted callees, pytrees, optimizers."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from differ import Cases, Setup, t
from torch import nn

cases = Cases()
case, scenario = cases.case, cases.scenario


def seeded(make: Callable[[], Any]) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return make()


def trained(module, *, fn=None, shape=(2, 4), **more):
    """A world where a module is called and taken backward; its gradients are looked at."""
    fn = fn or (lambda x: module(x))

    def backward(out):
        first = out[0] if isinstance(out, tuple) else out
        first.sum().backward()

    return Setup(fn, lambda: (t(*shape),), watch=lambda: [p.grad for p in module.parameters()], after=backward, **more)


# ---- containers --------------------------------------------------------------------------------------------------------


@scenario()
def module_list():
    ml = seeded(lambda: nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4)]))

    def f(x):
        for m in ml:
            x = m(x)
        for i, m in enumerate(reversed(ml)):
            x = m(x) + i
        for m in ml[1:]:
            x = m(x)
        return x, len(ml), ml[-1](x), [type(m).__name__ for m in ml[:2]], ml[0] in ml

    return trained(ml, fn=f)


@scenario()
def module_dict():
    md = seeded(lambda: nn.ModuleDict({"l": nn.Linear(4, 4), "r": nn.ReLU()}))

    def f(x):
        for name, m in md.items():
            x = m(x) + len(name)
        return x, list(md), "l" in md, md["r"](x), list(md.keys()), [type(v).__name__ for v in md.values()], len(md)

    return trained(md, fn=f)


@scenario()
def sequential():
    sq = seeded(lambda: nn.Sequential(collections.OrderedDict(a=nn.Linear(4, 4), b=nn.Tanh(), c=nn.Linear(4, 4))))
    return trained(sq, fn=lambda x: (sq(x), sq[0](x), sq[:2](x), sq.a(x), len(sq), [n for n, _ in sq.named_children()]))


@scenario()
def parameter_list():
    pl = nn.ParameterList([t(4, seed=i) for i in range(3)])

    def f(x):
        for p in pl:
            x = x * p
        return x + pl[-1] + len(pl), [p.shape for p in pl[:2]], sum(p.sum() for p in reversed(list(pl)))

    return trained(pl, fn=f)


@scenario()
def parameter_dict():
    pd = nn.ParameterDict({"a": t(4), "b": t(4, seed=1)})

    def f(x):
        for name, p in pd.items():
            x = x * p + len(name)
        return x + pd["a"] + pd.b, list(pd.keys()), "a" in pd, len(pd), [v.sum() for v in pd.values()]

    return trained(pd, fn=f)


@scenario()
def walks_over_a_module():
    sq = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))

    def f(x):
        names = [n for n, _ in sq.named_parameters()], [n for n, _ in sq.named_modules()], [n for n, _ in sq.named_buffers()]
        return (
            sum(p.sum() for p in sq.parameters()) * x,
            names,
            len(list(sq.children())),
            sq.get_submodule("0")(x),
            sq.get_parameter("0.weight").sum(),
        )

    return trained(sq, fn=f)


@scenario()
def switched_to_evaluation():
    sq = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)))

    def f(x):
        sq.train(False)
        return sq(x), sq.training, sq[1].training

    return trained(sq, fn=f)


# ---- utilities ---------------------------------------------------------------------------------------------------------


@scenario()
def weight_norm():
    return trained(seeded(lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))))


@scenario()
def spectral_norm():
    return trained(seeded(lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))))


@scenario()
def old_spectral_norm():
    return trained(seeded(lambda: nn.utils.spectral_norm(nn.Linear(4, 4))))


@scenario()
def own_parametrization():
    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).t()

    lin = seeded(lambda: nn.Linear(4, 4))
    nn.utils.parametrize.register_parametrization(lin, "weight", Symmetric())
    return trained(lin)


@scenario()
def clipped_gradients():
    lin = seeded(lambda: nn.Linear(4, 4))
    for p in lin.parameters():
        p.grad = torch.ones_like(p) * 3

    def f(x):
        norm = nn.utils.clip_grad_norm_(lin.parameters(), 1.0)
        nn.utils.clip_grad_value_(lin.parameters(), 0.2)
        return norm + x.sum()

    return Setup(f, lambda: (t(3),), watch=lambda: [p.grad for p in lin.parameters()])


@scenario()
def parameters_to_vector():
    lin = seeded(lambda: nn.Linear(4, 4))
    return trained(lin, fn=lambda x: nn.utils.parameters_to_vector(lin.parameters()) * x.sum())


@case(lambda: (t(3, 4), t(2, 4)))
def padded_sequences(x, y):
    return nn.utils.rnn.pad_sequence([x, y], batch_first=True), nn.utils.rnn.pad_sequence([x, y], padding_value=2.0)


@scenario()
def functional_call():
    lin = seeded(lambda: nn.Linear(4, 4))

    def f(x):
        return torch.func.functional_call(lin, {"weight": lin.weight * 2, "bias": lin.bias}, (x,))

    return trained(lin, fn=f)


@scenario()
def functional_call_with_others():
    lin = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
    weights = {name: p.detach() * 3 for name, p in lin.named_parameters()}
    return Setup(lambda x, w: torch.func.functional_call(lin, w, x), lambda: (t(2, 4), weights), watch=lambda: list(lin.buffers()))


class Reading(nn.modules.lazy.LazyModuleMixin, nn.Module):
    """Takes its weight from the values of its first input, and says so."""

    def __init__(self):
        super().__init__()
        self.weight = nn.UninitializedParameter()

    def initialize_parameters(self, batch, *, scale):
        print("initialised")
        self.weight.materialize(batch["x"][0].shape)
        with torch.no_grad():
            self.weight.copy_(batch["x"][0] * scale)

    def forward(self, batch, *, scale):
        return batch["x"][0] * self.weight + scale


def of_lazy_modules(make, fn):
    """A world whose function is called with a module that has no parameters yet."""
    module = make()

    def look():
        return [type(module).__name__, *(type(m).__name__ for m in module.children()), *((p, p.grad) for p in module.parameters())]

    return Setup(lambda x: fn(module, x), lambda: (t(2, 4),), watch=look, after=lambda out: out.sum().backward())


@scenario(ops=["linear"])
def lazy_linear():
    return of_lazy_modules(lambda: nn.LazyLinear(3), lambda m, x: m(x))


@scenario(ops=["mul", "linear", "relu", "linear", "add_", "batch_norm"])
def lazy_modules_on_each_other():
    return of_lazy_modules(
        lambda: nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(3), nn.LazyBatchNorm1d()),
        lambda m, x: m(x * 2),
    )


@scenario(ops=["mul", "add"])
def lazy_module_that_reads_its_input():
    return of_lazy_modules(Reading, lambda m, x: m({"x": [x]}, scale=2))


@scenario(ops=["dropout", "linear"], skip="*")
def lazy_module_after_random_numbers():
    return of_lazy_modules(lambda: nn.LazyLinear(3), lambda m, x: m(F.dropout(x)))


@scenario(ops=["add", "mul", "add"], skip="*")
def lazy_module_that_reads_what_was_computed():
    return of_lazy_modules(Reading, lambda m, x: m({"x": [x + 1]}, scale=2))


@scenario()
def lazy_module():
    return Setup(lambda x, m: m(x), lambda: (t(2, 4), initialised(nn.LazyLinear(3))))


def initialised(module):
    with torch.no_grad():
        module(t(2, 4))
        for p in module.parameters():
            p.fill_(0.5)
    return module


# ---- hooks -------------------------------------------------------------------------------------------------------------


@scenario()
def forward_hooks():
    lin = seeded(lambda: nn.Linear(4, 4))
    lin.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    lin.register_forward_pre_hook(lambda m, args, kwargs: (args, kwargs), with_kwargs=True)
    lin.register_forward_hook(lambda m, args, out: out * 2)
    lin.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True)
    lin.register_forward_hook(lambda m, args, out: out - 3, always_call=True)
    return trained(lin)


@scenario()
def forward_hook_that_keeps():
    lin = seeded(lambda: nn.Linear(4, 4))
    kept = []
    lin.register_forward_hook(lambda m, args, out: kept.append(out.shape))
    return Setup(lambda x: lin(x), lambda: (t(2, 4),), watch=lambda: kept)


@scenario(after_change=(1, 0))
def hook_added_and_removed():
    lin = seeded(lambda: nn.Linear(4, 4))
    handles = []
    changes = [lambda: handles.append(lin.register_forward_hook(lambda m, args, out: out * 2)), lambda: handles.pop().remove()]
    return Setup(lambda x: lin(x), lambda: (t(2, 4),), changes=changes)


@scenario(after_change=(1, 0))
def global_hook():
    lin = seeded(lambda: nn.Linear(4, 4))
    handles = []

    def add():
        handles.append(torch.nn.modules.module.register_module_forward_hook(lambda m, args, out: out * 2))

    def cleanup():
        for handle in handles:
            handle.remove()

    return Setup(lambda x: lin(x), lambda: (t(2, 4),), changes=[add, lambda: handles.pop().remove()], cleanup=cleanup)


# ---- scripted callees --------------------------------------------------------------------------------------------------


@torch.jit.script
def scripted(x: torch.Tensor):
    return x.sin() + 1


@case(lambda: (t(3),), ops=["mul", "sin", "add", "mul"])
def scripted_function(x):
    return scripted(x * 2) * 2


@scenario(skip="UnsupportedDescriptor")
def scripted_module():
    m = torch.jit.script(seeded(lambda: nn.Linear(4, 4)))
    return Setup(lambda x: m(x * 2) + 1, lambda: (t(2, 4),))


@scenario(captures=(1, 1))
def attribute_of_a_c_object():
    m = torch.jit.trace(seeded(lambda: nn.Linear(4, 4)), t(2, 4))
    method = m._c._get_method("forward")

    def f(x):
        method.label = "x"
        return x + 1, method.label, hasattr(method, "other")

    return Setup(f, lambda: (t(3),), watch=lambda: method.label)


# ---- pytrees, sizes ----------------------------------------------------------------------------------------------------


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b


pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda items, context: Pair(*items))


@case(lambda: ({"a": t(3), "b": [t(2), (t(1), 3)]},))
def trees(d):
    leaves, spec = pytree.tree_flatten(d)
    return pytree.tree_map(lambda v: v * 2, d), pytree.tree_unflatten([v + 1 for v in leaves], spec), len(leaves), spec.num_leaves


@case(lambda: (t(3),))
def registered_nodes(x):
    p = pytree.tree_map(lambda v: v + 1, Pair(x, (x * 2, 3)))
    return p.a, p.b, type(p) is Pair, pytree.tree_leaves(Pair(1, [x]))


@case(lambda: (t(2, 3),))
def sizes(x):
    s = x.shape
    return s, s.numel(), s[1:], s + (2,), tuple(s), list(s), s == torch.Size([2, 3]), torch.Size((1, 2)), len(s), torch.empty(s).shape, type(s[:1])


# ---- optimizers --------------------------------------------------------------------------------------------------------


def optimizer_world(make):
    lin = seeded(lambda: nn.Linear(4, 4))
    optimizer = make(lin.parameters())

    def f(x):
        optimizer.zero_grad()
        loss = F.mse_loss(lin(x), x)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Setup(f, lambda: (t(2, 4),), watch=lambda: [p.detach() for p in lin.parameters()])


@scenario(skip="*")
def sgd_inside():
    return optimizer_world(lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9))


@scenario(skip="*")
def sgd_of_many_inside():
    return optimizer_world(lambda p: torch.optim.SGD(p, lr=0.1, foreach=True))


@scenario()
def optimizer_outside():
    lin = seeded(lambda: nn.Linear(4, 4))
    optimizer = torch.optim.Adam(lin.parameters(), lr=0.1)

    def after(loss):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return Setup(lambda x: F.mse_loss(lin(x), x), lambda: (t(2, 4),), watch=lambda: [p.detach() for p in lin.parameters()], after=after)


test_nn_library = cases.as_test(__name__)
