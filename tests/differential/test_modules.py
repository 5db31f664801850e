"""nn.Modules: containers, hooks, buffers, state, training."""

import torch
import torch.nn.functional as F
from differ import Cases, Setup, t
from torch import nn

cases = Cases()
case, scenario = cases.case, cases.scenario


def seeded(make):
    torch.manual_seed(3)
    return make()


def state(m):
    return lambda: {
        **{k: v for k, v in m.state_dict().items()},
        "grads": [p.grad for p in m.parameters()],
        "training": [c.training for c in m.modules()],
    }


def module(make, *shape, **kw):
    """A module called with one tensor."""
    m = seeded(make)
    return Setup(m, lambda: (t(*shape),), watch=state(m), **kw)


def trained(make, *shape):
    m = seeded(make)

    def backward(out):
        out = out if isinstance(out, torch.Tensor) else out[0]
        out.square().sum().backward()

    x = t(*shape, grad=True)
    return Setup(m, lambda: (x,), watch=lambda: (state(m)(), x.grad), after=backward)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.b = nn.Linear(8, 2, bias=False)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


@scenario()
def linear():
    return module(lambda: nn.Linear(4, 3), 2, 4)


@scenario()
def mlp():
    return module(Mlp, 2, 4)


@scenario(captures=(1, 0))
def mlp_trained():
    return trained(Mlp, 2, 4)


@scenario()
def sequential():
    return module(lambda: nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4), nn.Dropout(0.5)), 2, 4)


@scenario()
def sequential_trained():
    return trained(lambda: nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)), 2, 4)


@scenario()
def batch_norm_training():
    return trained(lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()), 2, 2, 6, 6)


@scenario()
def batch_norm_eval():
    return module(lambda: nn.Sequential(nn.BatchNorm1d(4)).eval(), 3, 4)


@scenario()
def dropout_train():
    return module(lambda: nn.Dropout(0.5), 20)


@scenario(after_change=(1, 0))
def train_then_eval_then_train():
    s = module(lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5)), 2, 4)
    s.changes = [lambda: s.fn.eval(), lambda: s.fn.train()]
    return s


@scenario()
def embedding():
    m = seeded(lambda: nn.Embedding(10, 4, padding_idx=0))
    return Setup(m, lambda: (t(2, 3, dtype=torch.int64),), watch=state(m))


@scenario()
def multihead_attention():
    m = seeded(lambda: nn.MultiheadAttention(8, 2, batch_first=True))
    return Setup(lambda x: m(x, x, x), lambda: (t(2, 3, 8),))


@scenario()
def transformer_layer():
    m = seeded(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True))
    return Setup(lambda x: m(x), lambda: (t(2, 3, 8),))


@scenario()
def transformer_layer_trained():
    return trained(lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), 2, 3, 8)


class Lists(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.named = nn.ModuleDict({"act": nn.ReLU(), "out": nn.Linear(4, 2)})
        self.scales = nn.ParameterList([nn.Parameter(torch.full((4,), float(i + 1))) for i in range(3)])
        self.biases = nn.ParameterDict({"b": nn.Parameter(torch.ones(2))})

    def forward(self, x):
        for i, (layer, s) in enumerate(zip(self.layers, self.scales)):
            x = self.named["act"](layer(x)) * s + i
        for layer in self.layers[1:]:
            x = layer(x)
        x = self.layers[-1](x)
        assert len(self.layers) == 3 and "out" in self.named
        return self.named["out"](x) + self.biases["b"], [k for k in self.named]


@scenario()
def module_containers():
    return module(Lists, 2, 4)


@scenario()
def module_containers_trained():
    return trained(Lists, 2, 4)


@scenario()
def shared_module():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a
            self.w = self.a.weight

        def forward(self, x):
            return self.b(self.a(x)) @ self.w

    return trained(Twice, 2, 4)


@scenario()
def buffers_written():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("tmp", torch.zeros(4), persistent=False)
            self.register_buffer("none", None)

        def forward(self, x):
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x - self.mean if self.none is None else x

    return module(Running, 2, 4)


@scenario(captures=(1, 0))
def buffer_rebound():
    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean = self.mean * 0.9 + x.mean(0)
            return x - self.mean

    return module(Running, 2, 4)


@scenario(captures=(1, 1))
def counter_attribute_on_self():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = 0
            self.seen = []

        def forward(self, x):
            self.n += 1
            self.seen.append(self.n)
            return x * self.n

    m = Counting()
    return Setup(m, lambda: (t(3),), watch=lambda: (m.n, m.seen))


@scenario()
def output_kept_on_self():
    class Keeping(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            self.last = x * 2
            return x + 1

    m = Keeping()
    return Setup(
        lambda x: m(x),
        lambda: (t(3),),
        watch=lambda: m.last,
    )


@scenario()
def forward_hooks():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    calls = []
    m[0].register_forward_pre_hook(lambda mod, args: (args[0] + 1,))
    m[0].register_forward_hook(lambda mod, args, out: out * 2)
    m.register_forward_hook(lambda mod, args, kwargs, out: out + 1, with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: calls.append(type(mod).__name__))
    return Setup(m, lambda: (t(2, 4),), watch=lambda: calls)


@scenario(after_change=(1, 0))
def hook_added_and_removed_later():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    box = []
    return Setup(
        m, lambda: (t(2, 4),), changes=[lambda: box.append(m[0].register_forward_hook(lambda mod, args, out: out * 2)), lambda: box[0].remove()]
    )


@scenario(after_change=(1,))
def hook_added_to_outer_module():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    return Setup(m, lambda: (t(2, 4),), changes=[lambda: m.register_forward_pre_hook(lambda mod, args: (args[0] * 2,))])


@scenario(after_change=(None,))
def global_hook_added_later():
    m = seeded(lambda: nn.Linear(4, 4))
    box = []
    return Setup(
        lambda x: m(x), lambda: (t(2, 4),),
        changes=[lambda: box.append(nn.modules.module.register_module_forward_hook(lambda mod, args, out: out * 2))],
        cleanup=lambda: [h.remove() for h in box],
    )  # fmt: skip


@scenario()
def backward_hook():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    m[0].weight.register_hook(lambda g: g * 2)
    return Setup(lambda x: m(x), lambda: (t(2, 4),), watch=lambda: m[0].weight.grad, after=lambda out: out.sum().backward())


@scenario(skip="GradRead")
def full_backward_hook():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    calls = []
    m[0].register_full_backward_hook(lambda mod, gi, go: calls.append(len(go)))
    return Setup(lambda x: m(x), lambda: (t(2, 4),), watch=lambda: (m[0].weight.grad, calls), after=lambda out: out.sum().backward())


@scenario(after_change=(None,))
def parameter_replaced():
    m = seeded(lambda: nn.Linear(4, 4))

    def change():
        m.weight = nn.Parameter(t(4, 4, seed=9))

    return Setup(lambda x: m(x), lambda: (t(2, 4),), changes=[change])


@scenario(after_change=(0,))
def parameter_changed_in_place():
    m = seeded(lambda: nn.Linear(4, 4))

    def change():
        with torch.no_grad():
            m.weight.add_(1)

    return Setup(lambda x: m(x), lambda: (t(2, 4),), changes=[change])


@scenario(after_change=(1,))
def submodule_replaced():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU()))

    def change():
        m[1] = nn.Sigmoid()

    return Setup(lambda x: m(x), lambda: (t(2, 4),), changes=[change])


@scenario(after_change=(1,))
def layer_appended():
    m = seeded(lambda: nn.ModuleList([nn.Linear(4, 4)]))

    def f(x):
        for layer in m:
            x = layer(x)
        return x

    return Setup(f, lambda: (t(2, 4),), changes=[lambda: m.append(nn.ReLU())])


@scenario(after_change=(1,))
def requires_grad_turned_off():
    m = seeded(lambda: nn.Linear(4, 4))
    return Setup(lambda x: m(x), lambda: (t(2, 4),), changes=[lambda: m.requires_grad_(False)])


@scenario(after_change=(1,))
def module_to_double():
    m = seeded(lambda: nn.Linear(4, 4))
    return Setup(lambda x: m(x.to(m.weight.dtype)), lambda: (t(2, 4),), changes=[lambda: m.double()])


@scenario(after_change=(1,))
def forward_patched_on_instance():
    m = seeded(lambda: nn.Linear(4, 4))

    def change():
        m.forward = lambda x: x * 100

    return Setup(lambda x: m(x), lambda: (t(2, 4),), changes=[change])


@scenario(after_change=(1,))
def forward_patched_on_class():
    class A(nn.Module):
        def forward(self, x):
            return x + 1

    m = A()

    def change():
        A.forward = lambda self, x: x * 100

    return Setup(lambda x: m(x), lambda: (t(2, 4),), changes=[change])


@scenario()
def walking_modules():
    m = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU())))

    def f(x):
        total = 0
        for p in m.parameters():
            total = total + p.sum()
        names = [n for n, _ in m.named_modules()]
        kids = [type(c).__name__ for c in m.children()]
        return total * x, names, kids, [n for n, _ in m.named_parameters()], len(m), m[1][1](x)

    return Setup(f, lambda: (t(2, 4),))


@scenario()
def module_getattr_override():
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Mlp()

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

        def forward(self, x):
            return self.b(self.a(x))

    return module(Wrapper, 2, 4)


@scenario()
def module_missing_attribute_caught():
    m = nn.Linear(4, 4)

    def f(x):
        try:
            m.nothing
        except AttributeError as error:
            return x + 1, str(error), hasattr(m, "nothing"), hasattr(m, "weight")

    return Setup(f, lambda: (t(2, 4),))


@scenario()
def module_made_inside():
    def f(x):
        act = nn.ReLU()
        soft = nn.Softmax(dim=-1)
        return soft(act(x))

    return Setup(f, lambda: (t(2, 4),))


@scenario()
def lazy_bool_of_training_flag():
    m = nn.Dropout(0.3)
    return Setup(lambda x: F.dropout(x, 0.5, m.training) + m.p, lambda: (t(10),))


@scenario()
def method_other_than_forward():
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def encode(self, x):
            return self.l(x) * 2

        def forward(self, x):
            return self.encode(x)

    m = seeded(A)
    return Setup(m.encode, lambda: (t(2, 4),))


@scenario()
def gradient_accumulates():
    m = seeded(Mlp)
    return Setup(m, lambda: (t(2, 4),), watch=lambda: [p.grad for p in m.parameters()], after=lambda out: [out.sum().backward(), None][1])


@scenario()
def losses():
    m = seeded(lambda: nn.Linear(4, 3))

    def f(x, y):
        logits = m(x)
        return F.cross_entropy(logits, y), nn.MSELoss()(logits, torch.zeros_like(logits))

    return Setup(f, lambda: (t(2, 4), torch.tensor([0, 2])), watch=lambda: m.weight.grad, after=lambda out: out[0].backward())


@scenario()
def conv_pool_stack():
    return trained(lambda: nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(2 * 9, 3)), 2, 1, 6, 6)


@scenario()
def module_with_kwargs():
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)

        def forward(self, x, *, scale=1.0, extra=None, **rest):
            y = self.l(x) * scale
            return {"y": y, "rest": rest, "extra": extra}

    m = seeded(A)
    return Setup(m, lambda: ((t(2, 4),), {"scale": 2.0, "more": 3}))


@scenario()
def nested_compiled_module():
    import cdynamo

    m = seeded(Mlp)
    inner = cdynamo.compile(m, backend="eager")
    return Setup(lambda x: inner(x) * 2, lambda: (t(2, 4),))


@scenario(after_change=(1,))
def weights_tied_later():
    a, b = seeded(lambda: (nn.Linear(4, 4), nn.Linear(4, 4)))

    def f(x):
        return b(a(x)), a.weight is b.weight

    def change():
        b.weight = a.weight

    return Setup(f, lambda: (t(2, 4),), changes=[change])


test_modules = cases.as_test(__name__)
