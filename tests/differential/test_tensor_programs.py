"""Tensor programs: operators, in-place, views, indexing, factories, functional, modes, RNG, queries."""

import io
import math

import torch
import torch.nn.functional as F
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


@case(lambda: (t(3), t(3, seed=1)))
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, x // y, x % y, x**2, 2**x, -x, +x, abs(x), 1 - x, 2 / x, x @ y, 3 // x


@case(lambda: (t(3), t(3, seed=1)))
def comparisons(x, y):
    return x > y, x < y, x >= y, x <= y, x == y, x != y, 0.5 < x, x == None, x != "a"  # noqa: E711


@case(lambda: (t(4, dtype=torch.int64), t(4, dtype=torch.int64, seed=2)))
def bitwise(x, y):
    return x & y, x | y, x ^ y, ~x, x << 1, x >> 1, 7 & x


@case(lambda: (t(4) > 0.5, t(4, seed=2) > 0.5))
def logical(a, b):
    return a & b, a | b, ~a, a ^ b, torch.logical_and(a, b)


@case(lambda: (t(3), t(3, seed=1)))
def inplace_operators(x, y):
    z = x.clone()
    z += y
    z *= 2
    z -= 1
    z /= y
    z **= 2
    return z


@case(lambda: (t(3), t(3, seed=1)))
def inplace_on_argument(x, y):
    x += y
    x.mul_(2)
    alias = x
    alias.add_(1)
    return alias


@case(lambda: (t(3, 4),))
def inplace_through_view(x):
    row = x[1]
    row.zero_()
    x.view(-1)[0] = 7
    x.t()[0, 0] += 1
    return x.sum(), row


@case(lambda: (t(3, 4),))
def views(x):
    return (
        x.view(4, 3),
        x.reshape(-1),
        x.t(),
        x.T,
        x.transpose(0, 1),
        x.permute(1, 0),
        x.unsqueeze(0),
        x[None],
        x.squeeze(),
        x.expand(2, 3, 4),
        x.flatten(),
        x.narrow(0, 1, 2),
        x.select(1, 0),
        x.unfold(0, 2, 1),
        x.mT,
    )


@case(lambda: (t(3, 4),))
def returns_view_of_input(x):
    v = x[1:]
    w = v[0]
    return v, w


@case(lambda: (t(6, 4),))
def chunks_and_splits(x):
    a, b = x.chunk(2)
    c, d, e = x.split(2)
    f, g = torch.split(x, [2, 4])
    h = torch.unbind(x, 1)
    i, j = x.tensor_split(2)
    return a, b, c, d, e, f, g, h, i, j


@case(lambda: (t(4, 5, 6),))
def indexing_basic(x):
    return (
        x[0],
        x[-1],
        x[1:3],
        x[::2],
        x[..., 0],
        x[:, None],
        x[0, 1, 2],
        x[:, 1:4:2, -1],
        x[(0, 1)],
        x[1, ...],
        x[None, ..., None],
        x[True],
        x[slice(1, 2)],
    )


@case(lambda: (t(4, 5), torch.tensor([0, 2]), torch.tensor([[0], [1]])))
def indexing_advanced(x, i, j):
    return x[i], x[:, i], x[i, i], x[j, i], x[[0, 1]], x[[0, 1], [1, 2]], x[i, None], x[i][:, 0], x[-1, i], x[1:, [0, 3]]


@case(lambda: (t(4, 5), torch.tensor([True, False, True, False])), skip="DataDependentShape")
def indexing_by_mask(x, m):
    return x[m]


@case(lambda: (t(4, 5), torch.tensor([0, 2]), torch.tensor([True, False, True, False])))
def index_assignment(x, i, m):
    y = x.clone()
    y[0] = 1
    y[1:3, ::2] = 2.5
    y[i] = x[i] * 2
    y[m] = 0
    y[..., -1] += 1
    y[i, [0, 1]] -= 1
    y[:, None] *= 2
    return y


@case(lambda: (t(4, 5), torch.tensor(2)), skip="DataDependentShape")
def index_by_scalar_tensor(x, i):
    return x[i], x[i, 0]


@case(lambda: (t(4, 5),))
def tensor_iteration(x):
    out = [row * i for i, row in enumerate(x)]
    a, b, c, d = x
    return out, a + d, len(x), [float(0)]


@case(lambda: (t(2, 3),))
def factories(x):
    return (
        torch.zeros(2, 3), torch.ones_like(x), torch.full((2,), 3.5), torch.arange(5), torch.arange(1, 10, 2.0), torch.linspace(0, 1, 5), torch.eye(3),
        torch.empty(0), torch.tensor([1, 2.5]), torch.tensor(3), x.new_zeros(4), x.new_full((2,), 1), torch.zeros(x.shape), torch.tril(torch.ones(3, 3)),
        torch.as_tensor([1, 2]), torch.scalar_tensor(2.0), torch.zeros(*x.shape, dtype=torch.int32), torch.full_like(x, 2), x.new_tensor([1.0]),
    )  # fmt: skip


@case(lambda: (t(2, 3),))
def tensor_from_python_values(x):
    n = x.shape[0]
    return torch.tensor([[n, 1], [2, 3]], dtype=torch.float64), torch.tensor([i * 2 for i in range(n)]), torch.tensor(True), torch.tensor([])


@case(lambda: (t(4, 8), t(4, 8, seed=1)))
def functional(x, y):
    return (
        F.relu(x), F.gelu(x), F.silu(x), F.softmax(x, dim=-1), F.log_softmax(x, -1), F.layer_norm(x, (8,)), F.normalize(x), F.mse_loss(x, y),
        F.pad(x, (1, 1)), F.dropout(x, 0.5, training=False), F.linear(x, y), F.cosine_similarity(x, y), F.softplus(x), F.leaky_relu(x, 0.1), F.one_hot(torch.tensor([1, 2]), 4),
        F.interpolate(x[None, None], scale_factor=2.0), F.smooth_l1_loss(x, y), F.sigmoid(x), F.tanh(x), F.elu(x), F.glu(x),
    )  # fmt: skip


@case(lambda: (t(2, 2, 4, 8), t(2, 2, 4, 8, seed=1), t(2, 2, 4, 8, seed=2)))
def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True), (q @ k.transpose(-1, -2) / math.sqrt(8)).softmax(-1) @ v


@case(lambda: (t(2, 3, 4), t(2, 4, 5, seed=1)))
def einsum(a, b):
    return (
        torch.einsum("bij,bjk->bik", a, b),
        torch.einsum("bij->bji", a),
        torch.einsum("bij,bij->", a, a),
        a @ b,
        torch.bmm(a, b),
        torch.matmul(a, b),
    )


@case(lambda: (t(3, 4),))
def reductions(x):
    return (
        x.sum(),
        x.sum(0),
        x.mean(dim=1, keepdim=True),
        x.max(),
        x.max(1),
        x.min(dim=0),
        x.argmax(),
        x.argmin(1),
        x.std(),
        x.var(0),
        x.prod(),
        x.norm(),
        x.all(),
        x.any(0),
        x.cumsum(0),
        x.logsumexp(1),
        x.topk(2),
        x.sort(),
        x.median(),
        x.amax(1),
        x.count_nonzero(),
    )


@case(lambda: (t(3, 4), t(3, 4, seed=1)))
def joining(x, y):
    return (
        torch.cat([x, y]),
        torch.cat((x, y), dim=1),
        torch.stack([x, y, x]),
        torch.hstack([x, y]),
        torch.vstack([x, y]),
        torch.concat([x, y], -1),
        torch.where(x > y, x, y),
        torch.where(x > 0.5, 1.0, x),
        torch.outer(x[0], y[0]),
    )


@case(lambda: (t(3, 4), t(3, 4, seed=1) > 0.5))
def masking(x, m):
    return (
        x.masked_fill(m, 0.0),
        x.masked_fill(~m, float("-inf")),
        torch.where(m, x, -x),
        x * m,
        x.clamp(0.2, 0.8),
        x.clamp_(min=0.3),
        torch.triu(x, 1),
        x.masked_fill_(m, 9),
    )


@case(lambda: (t(3, 4), torch.tensor([[0, 1], [1, 2], [3, 0]])))
def gather_scatter(x, i):
    y = torch.zeros(3, 4)
    y.scatter_(1, i, 1.0)
    return x.gather(1, i), y, x.index_select(1, i[0]), torch.take_along_dim(x, i, 1), y.scatter_add(1, i, x[:, :2])


@case(lambda: (t(2, 3),))
def dtype_conversions(x):
    return (
        x.double(),
        x.half(),
        x.int(),
        x.to(torch.float64),
        x.to("cpu"),
        x.to(x),
        x.type_as(x.double()),
        x.float(),
        x.bool(),
        x.bfloat16().float(),
        x.to(dtype=torch.int64, device="cpu"),
        x.long(),
        x.type(torch.float64),
    )


@case(lambda: (t(2, 3),))
def to_same_is_identity(x):
    return x.to(torch.float32) is x, x.float() is x, x.contiguous() is x, x.to("cpu") is x, x + 1


@case(lambda: (t(2, 3),))
def queries(x):
    return (
        x.shape, x.size(), x.size(0), x.dim(), x.ndim, x.numel(), x.dtype, x.device, x.stride(), x.is_contiguous(), x.requires_grad, x.is_floating_point(), x.layout,
        x.device.type, len(x), x.element_size(), x.nelement(), x.is_cuda, x.itemsize, x.T.is_contiguous(), x.storage_offset(), x.is_leaf, x.dtype.is_floating_point,
        torch.is_tensor(x), isinstance(x, torch.Tensor), torch.is_floating_point(x), x.grad is None, x + 1, torch.finfo(x.dtype).max, torch.iinfo(torch.int8).min, str(x.dtype), x.size()[-1], *x.shape,
    )  # fmt: skip


@case(lambda: (t(2, 3),))
def shape_arithmetic(x):
    b, n = x.shape
    return (
        x.view(b * n),
        x.reshape(b, -1, 1),
        torch.zeros(b + 1, n // 2),
        x.expand(4, -1, -1),
        x.repeat(2, 1),
        x[: n - 2],
        math.prod(x.shape),
        x.new_ones(x.size(0), 1),
    )


@case(lambda: (t(2, 3, grad=True),))
def requires_grad_flow(x):
    y = x * 2
    return y, y.detach(), y.requires_grad, x.detach().requires_grad, y.is_leaf, (x.detach() + 1).requires_grad


@scenario()
def backward_outside():
    x = t(3, grad=True)
    return Setup(lambda a: (a * 2).sin().sum(), lambda: (x,), watch=lambda: x.grad, after=lambda out: out.backward())


@case(lambda: (t(3, grad=True),))
def no_grad_block(x):
    with torch.no_grad():
        y = x * 2
        with torch.enable_grad():
            z = x * 3
        a = torch.is_grad_enabled()
    w = x * 4
    return y, z, w, y.requires_grad, z.requires_grad, a, torch.is_grad_enabled()


@scenario()
def no_grad_decorated():
    @torch.no_grad()
    def f(x):
        return x * 2

    return Setup(f, lambda: (t(3, grad=True),))


@scenario()
def no_grad_decorated_inner():
    @torch.no_grad()
    def g(x):
        return x * 2

    return Setup(lambda x: (g(x), x * 3), lambda: (t(3, grad=True),))


@case(lambda: (t(3, grad=True),))
def set_grad_enabled(x):
    with torch.set_grad_enabled(False):
        y = x * 2
    torch.set_grad_enabled(False)
    z = x * 3
    torch.set_grad_enabled(True)
    return y, z, x * 4


@scenario()
def grad_mode_left_changed():
    def f(x):
        torch.set_grad_enabled(False)
        return x * 2

    return Setup(f, lambda: (t(3, grad=True),), captures=(1,)) if False else Setup(f, lambda: [torch.set_grad_enabled(True), (t(3, grad=True),)][1])


@scenario(after_change=(1,))
def called_under_no_grad():
    def f(x):
        return x * 2

    return Setup(f, lambda: (t(3, grad=True),), changes=[lambda: torch.set_grad_enabled(False)])


@case(lambda: (t(3, grad=True),))
def grad_mode_restored_after_exception(x):
    try:
        with torch.no_grad():
            raise ValueError
    except ValueError:
        pass
    return x * 2, torch.is_grad_enabled()


@case(lambda: (t(3, grad=True),))
def inference_mode(x):
    with torch.inference_mode():
        y = x * 2
    return y, x * 3


@case(lambda: (t(4, 4), t(4, 4, seed=1)))
def autocast(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a = x @ y
        with torch.autocast("cpu", enabled=False):
            b = x @ y
    return a, b, x @ y, a.dtype


@scenario(after_change=(1,))
def called_under_autocast():
    box = []

    def change():
        box.append(torch.autocast("cpu", dtype=torch.bfloat16))
        box[0].__enter__()

    return Setup(lambda x, y: x @ y, lambda: (t(4, 4), t(4, 4, seed=1)), changes=[change], cleanup=lambda: box and box[0].__exit__(None, None, None))


@case(lambda: (t(4),), skip="TensorMethod", captures=(1, 0), graphs=0)
def random_numbers_from_a_range(x):
    return x.random_(**{"from": 3, "to": 9})


@case(lambda: (t(4),), skip="*", graphs=2)
def storages(x):
    y = x * 2
    held = y.untyped_storage()
    return torch.empty(0).set_(held, 1, (2,), (1,)) + 1, held.nbytes(), held.device


@case(lambda: (t(4),), skip="*", graphs=2, captures=())
def saved_and_loaded(x):
    y = x * 2
    file = io.BytesIO()
    torch.save({"y": y}, file)
    file.seek(0)
    return torch.load(file)["y"] + 1


@case(lambda: (t(4),), skip="*", graphs=0, captures=(1, 0))
def same_memory(x):
    y = x
    return x.is_set_to(y), x.detach().is_set_to(x)


@case(lambda: (t(2, 3),), ops=["add"], skip="*")
def tensor_methods_called_wrongly(x):
    log = []
    for call in (lambda: x.size(0, 1), lambda: x.stride(0, dim=1), lambda: x.size(dim=7), lambda: x.requires_grad_(1), lambda: x.size(other=1)):
        try:
            call()
        except (TypeError, IndexError) as error:
            log.append((type(error), str(error)))
    return x + 1, log


LAYOUTS = [
    t(2, 3, 4, 5),
    t(2, 3, 4, 5).to(memory_format=torch.channels_last),
    t(2, 1, 4, 5),
    t(2, 3, 1, 1),
    t(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d),
    t(2, 3).t(),
    torch.ones(2, 0, 4, 5).to(memory_format=torch.channels_last),
    torch.ones(0, 3).t(),
    t(2, 3, 4, 5)[:, :, ::2],
]


@case(lambda: LAYOUTS)
def memory_formats(*inputs):
    formats = [torch.contiguous_format, torch.channels_last, torch.channels_last_3d]
    return [[x.is_contiguous(), *(x.is_contiguous(memory_format=f) for f in formats)] for x in inputs], inputs[0] + 1


@case(lambda: (t(4),))
def random_ops(x):
    return (
        torch.rand(3),
        torch.randn(2, 2),
        torch.rand_like(x),
        torch.randint(0, 10, (4,)),
        torch.randperm(5),
        torch.bernoulli(x.clamp(0, 1)),
        F.dropout(x),
        torch.empty(3).uniform_(),
        torch.normal(0.0, 1.0, (2,)),
    )


@case(lambda: (t(4),))
def manual_seed_inside(x):
    torch.manual_seed(3)
    return x + torch.rand(4)


@case(lambda: (t(4),))
def python_random(x):
    import random

    return x * random.random(), random.randint(1, 5)


@case(lambda: (t(4),))
def rng_state_after_dropout(x):
    return F.dropout(x, 0.3), torch.nn.Dropout(0.5)(x)


@case(lambda: (t(4),), skip="DataDependentBranch")
def random_branch(x):
    y = F.dropout(x, 0.5)
    if torch.rand([]) < 0.5:
        return y
    return y + torch.rand(4)


@case(lambda: (t(3), t(3, seed=1)))
def out_argument(x, y):
    z = torch.empty(3)
    torch.add(x, y, out=z)
    return z


@case(lambda: (t(3),))
def tensor_attribute_set(x):
    y = x + 1
    y.tag = "mine"
    return y, y.tag


@case(lambda: (t(3),))
def data_attribute(x):
    y = x.data
    return y * 2, y.requires_grad


@case(lambda: (t(3, grad=True),))
def detach_and_inplace(x):
    y = x.detach().clone()
    y[0] = 5
    return y, x * 1


@case(lambda: (t(3),), skip="RequiresGradChange")
def requires_grad_inplace(x):
    y = x.clone().requires_grad_()
    return (y * 2).sum()


@case(lambda: (t(3),))
def torch_function_as_argument(x):
    def apply(fn, *a, **k):
        return fn(*a, **k)

    return apply(torch.sin, x), apply(torch.sum, x, dim=0), apply(torch.Tensor.cos, x), list(map(torch.exp, [x, x]))


@case(lambda: (t(2, 3),))
def complex_numbers(x):
    c = torch.complex(x, x)
    return c.real, c.imag, c.abs(), torch.view_as_real(c), c * 1j, torch.polar(x, x)


@case(lambda: (t(2, 3),))
def linear_algebra(x):
    m = x @ x.T
    return torch.linalg.norm(x), torch.linalg.inv(m + torch.eye(2)), m.diagonal(), m.trace(), torch.det(m), torch.diag(m)


@case(lambda: (t(2, 3),))
def empty_and_zero_dims(x):
    return x[:0], x.sum().unsqueeze(0), torch.zeros(0, 3) + x[:0], x[0, 0], x[0, 0] * x


@case(lambda: (t(3), t(3, seed=1)))
def tensor_in_list_by_identity(x, y):
    items = [x, y]
    return items[0] is x, items.index(x), x + 1


@case(lambda: (t(3),))
def clone_variants(x):
    return x.clone(), torch.clone(x), x.detach(), x.contiguous(), torch.zeros_like(x).copy_(x), x.fill_(2.0), x


@case(lambda: (t(3),))
def same_tensor_twice(x):
    y = x * 2
    return [y, y], {"a": y}, (y,)


@scenario()
def same_argument_twice():
    def f(a, b):
        a.add_(1)
        return a + b

    x = t(3)
    return Setup(f, lambda: [x.copy_(t(3)), (x, x)][1])


@case(lambda: (t(3, dtype=torch.float64), 2, 3.5, True))
def scalar_promotion(x, i, f, b):
    return (
        x * i,
        x + f,
        x * b,
        x.to(torch.int32) * f,
        x.to(torch.int32) + i,
        torch.add(x, i, alpha=f),
        x.float() * torch.tensor(2.0, dtype=torch.float64),
    )


@case(lambda: (t(3),), skip="TensorToList")
def tolist(x):
    return x + 1, x.tolist()


@case(lambda: (t(3),), skip="ScalarRead")
def int_of_tensor(x):
    return x * int(x.sum())


@case(lambda: (t(3),), skip="DataDependentShape")
def nonzero(x):
    return torch.nonzero(x)


@case(lambda: (t(3), t(4, seed=1)))
def meshgrid_and_broadcast(x, y):
    return torch.meshgrid(x, y, indexing="ij"), torch.broadcast_tensors(x[:, None], y), x[:, None] * y, torch.cartesian_prod(x, y)


@case(lambda: (t(3, grad=True), t(3, seed=1)))
def autograd_grad_inside(x, y):
    z = (x * y).sum()
    return z


@scenario()
def custom_autograd_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = t(3, grad=True)
    return Setup(lambda a: Double.apply(a).sum(), lambda: (x,), watch=lambda: x.grad, after=lambda out: out.backward())


@scenario()
def checkpointed():
    from torch.utils.checkpoint import checkpoint

    lin = torch.nn.Linear(3, 3)
    with torch.no_grad():
        lin.weight.fill_(0.5), lin.bias.fill_(0.1)

    def f(a):
        return checkpoint(lambda b: lin(b).sin(), a, use_reentrant=False).sum()

    return Setup(f, lambda: (t(2, 3, grad=True),), watch=lambda: lin.weight.grad, after=lambda out: out.backward())


@case(lambda: (t(3),))
def default_dtype(x):
    return torch.get_default_dtype(), torch.ones(2), x + 1


@case(lambda: (t(2, 3),))
def numpy_free_methods(x):
    return (
        x.apply_ is not None,
        x.tile(2),
        x.roll(1),
        x.flip(0),
        x.rot90(),
        x.movedim(0, 1),
        x.diff(),
        x.swapaxes(0, 1),
        x.ravel(),
        x.unflatten(1, (3, 1)),
    )


@case(lambda: (t(3),), ops=["add.Tensor", "mul"])
def overload_of_an_operator(x):
    return torch.ops.aten.add.Tensor(x, 1) * len(torch.ops.aten.add.overloads())


test_tensor_programs = cases.as_test(__name__)
