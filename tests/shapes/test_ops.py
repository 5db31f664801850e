"""Reductions, products, joining, factories and nn ops against eager."""

import itertools
import operator

import pytest
import torch
import torch.nn.functional as F
from oracle import Tally, layouts
from test_pointwise import finish, tensors

F32 = [torch.float32]
MIXED = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.uint8]

REDUCTIONS = {
    "sum": [
        ((), {}),
        ((0,), {}),
        ((-1,), {"keepdim": True}),
        (((0, 1),), {}),
        ((), {"dtype": torch.float64}),
        ((), {"dim": None}),
        ((1, True), {}),
        (((),), {}),
    ],
    "mean": [((), {}), ((0,), {}), ((-1,), {"keepdim": True}), (((0, 1),), {}), ((), {"dtype": torch.float64})],
    "prod": [((), {}), ((0,), {}), ((-1,), {"keepdim": True}), ((), {"dtype": torch.float64})],
    "amax": [((), {}), ((0,), {}), (((0, -1),), {"keepdim": True})],
    "amin": [((1,), {})],
    "max": [((), {}), ((0,), {}), ((-1,), {"keepdim": True}), ((), {"dim": 1})],
    "min": [((), {}), ((0,), {}), ((-1, True), {})],
    "argmax": [((), {}), ((0,), {}), ((-1,), {"keepdim": True}), ((), {"dim": None}), ((), {"keepdim": True})],
    "argmin": [((), {})],
    "all": [((), {}), ((0,), {}), ((-1,), {"keepdim": True}), (((0, 1),), {})],
    "any": [((), {}), ((0,), {}), (((0, 1),), {})],
    "var": [((), {}), ((0,), {}), ((), {"dim": -1, "keepdim": True}), ((), {"unbiased": False}), ((-1,), {"correction": 0}), ((-1, False), {})],
    "std": [((), {}), ((0,), {}), ((-1, True, True), {})],
    "norm": [
        ((), {}),
        ((2,), {}),
        ((), {"dim": 0}),
        ((2, -1, True), {}),
        (("fro",), {}),
        ((), {"p": 1, "dim": (0, 1)}),
        ((float("inf"),), {"dim": 0}),
    ],
    "logsumexp": [((0,), {}), ((-1,), {"keepdim": True}), (((0, 1),), {})],
    "cumsum": [((0,), {}), ((-1,), {"dtype": torch.float64})],
    "cumprod": [((0,), {})],
    "softmax": [((0,), {}), ((-1,), {}), ((), {"dim": 1}), ((-1,), {"dtype": torch.float64})],
    "log_softmax": [((-1,), {}), ((0,), {"dtype": torch.float32})],
    "topk": [((1,), {}), ((2,), {"dim": 0}), ((1, -1, False), {})],
    "sort": [((), {}), ((0,), {}), ((), {"descending": True}), ((), {"stable": True, "dim": 0})],
    "argsort": [((), {}), ((0,), {})],
}


@pytest.mark.parametrize("name", list(REDUCTIONS))
def test_reductions(name):
    tally = Tally()
    for t in tensors(shapes=[(), (0,), (3,), (2, 3), (2, 0), (2, 1, 3), (2, 3, 4, 5)], dtypes=MIXED):
        for args, kwargs in REDUCTIONS[name]:
            tally.check(name, t, *args, **kwargs)
            tally.check(getattr(torch, name), t, *args, **kwargs)
    for args, kwargs in REDUCTIONS[name]:
        tally.check(name, torch.rand(2, 3, requires_grad=True), *args, **kwargs)
    finish(tally, 0.4)


def test_reductions_elsewhere():
    tally = Tally()
    for t in tensors(dtypes=F32):
        tally.check(F.softmax, t, dim=-1)
        tally.check(F.log_softmax, t, -1, dtype=torch.float64)
        tally.check(torch.max, t, t)
        tally.check(torch.min, t, torch.ones(()))
        tally.check(torch.var_mean, t, dim=-1)
        tally.check(torch.linalg.vector_norm, t)
        tally.check(torch.linalg.vector_norm, t, 1, dim=-1)
        tally.check(torch.max, t, dim=0)
    finish(tally, 0.8)


MATRICES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 2)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((6, 1, 2, 3), (5, 3, 4)),
    ((6, 5, 2, 3), (3, 4)),
    ((0, 3), (3, 4)),
    ((2, 0), (0, 4)),
    ((2, 3), (4, 3)),
    ((2, 5, 2, 3), (2, 5, 3, 4)),
    ((1, 3), (3, 1)),
    ((1, 1, 3), (3, 4)),
]


def test_matmul():
    tally = Tally()
    for a, b in MATRICES:
        for x, y in itertools.product(layouts(a), layouts(b)):
            tally.check(torch.matmul, x, y)
            tally.check(operator.matmul, x, y)
            for function in (torch.mm, torch.bmm, torch.mv, torch.dot, torch.outer):
                tally.check(function, x, y)
        tally.check(torch.matmul, layouts(a, requires_grad=True)[0], layouts(b)[0])
        tally.check(torch.matmul, layouts(a, torch.float64)[0], layouts(b)[0])
        tally.check(torch.matmul, layouts(a, torch.int64)[0], layouts(b, torch.int64)[0])
    finish(tally, 0.95)


def test_add_products():
    tally = Tally()
    for a, b, c in [
        ((2, 3), (3, 4), (2, 4)),
        ((2, 3), (3, 4), (4,)),
        ((2, 3), (3, 4), ()),
        ((5, 2, 3), (5, 3, 4), (5, 2, 4)),
        ((5, 2, 3), (5, 3, 4), (1, 2, 4)),
        ((2, 3), (3,), (2,)),
        ((5, 2, 3), (5, 3, 4), (2, 4)),
    ]:
        function = {(2, 2): torch.addmm, (3, 3): torch.baddbmm, (2, 1): torch.addmv}[len(a), len(b)]
        for x, y, z in itertools.product(layouts(a)[:4], layouts(b)[:4], layouts(c)):
            tally.check(function, z, x, y)
            if function is not torch.addmm:
                continue
            tally.check(torch.addmm, z, x, y, beta=0.5, alpha=2)
            tally.check("addmm_", z, x, y)
    finish(tally, 0.95)


def test_linear():
    tally = Tally()
    for shape in [(3,), (2, 3), (5, 2, 3), (6, 5, 2, 3), (0, 3), (1, 1, 3), (1, 3)]:
        for x, w in itertools.product(layouts(shape), layouts((4, 3))):
            tally.check(F.linear, x, w)
            for b in layouts((4,)):
                tally.check(F.linear, x, w, b)
                tally.check(F.linear, x, w, bias=b)
        tally.check(F.linear, layouts(shape)[0], torch.ones(4, 3, requires_grad=True), torch.ones(4))
        tally.check(F.linear, layouts(shape, torch.bfloat16)[0], torch.ones(4, 3, dtype=torch.bfloat16), torch.ones(4, dtype=torch.bfloat16))
    finish(tally, 0.9)


def test_joining():
    tally = Tally()
    for shape in [(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (0,), ()]:
        for x, y in itertools.product(layouts(shape), layouts(shape) + layouts(shape, torch.int64)[:1]):
            for dim in (0, 1, -1):
                tally.check(torch.cat, [x, y], dim)
                tally.check(torch.cat, (x, y, x), dim=dim)
                tally.check(torch.stack, [x, y], dim)
    tally.check(torch.cat, [torch.ones(2, 3), torch.ones(0)], 0)
    tally.check(torch.cat, [torch.ones(2, 3), torch.ones(2, 4)], 0)
    tally.check(torch.cat, [torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)])
    finish(tally, 0.6)


def test_repeating():
    tally = Tally()
    for t in tensors(dtypes=F32):
        tally.check("repeat", t, 2)
        tally.check("repeat", t, 2, 3, 1)
        tally.check("repeat", t, (1, 1, 2, 2))
        tally.check(torch.tile, t, (2, 2))
        tally.check("tile", t, 2, 2)
        tally.check("repeat_interleave", t, 2)
        tally.check(torch.repeat_interleave, t, 3, dim=0)
        tally.check("repeat_interleave", t, 3, -1)
        tally.check(torch.roll, t, 1, 0)
        tally.check("roll", t, (1, 2), (0, -1))
        tally.check("roll", t, 1)
        tally.check("flip", t, 0)
        tally.check(torch.flip, t, (0, 1))
        tally.check("flip", t, [-1])
        tally.check(torch.tril, t)
        tally.check("triu", t, 1)
        tally.check("tril", t, diagonal=-1)
        tally.check("triu_", t)
    finish(tally, 0.7)


def test_picking():
    tally = Tally()
    one = torch.tensor([0, 1, 0])
    for t in tensors(shapes=[(3,), (2, 3), (2, 3, 4), (2, 3, 4, 5)], dtypes=F32):
        for dim in (0, -1):
            for index in layouts(tuple(t.shape), torch.int64):
                tally.check("gather", t, dim, index * 0)
                tally.check(torch.gather, t, dim=dim, index=index * 0)
                tally.check("scatter", t, dim, index * 0, t)
                tally.check("scatter", t, dim, index * 0, 1.5)
                tally.check("scatter_", t, dim, index * 0, value=1.5)
                tally.check("scatter_add", t, dim, index * 0, t)
                tally.check(torch.take_along_dim, t, index * 0, dim)
            tally.check("index_select", t, dim, one)
            tally.check(torch.index_select, t, dim=dim, index=one)
            source = torch.index_select(t, dim, one)
            tally.check("index_add", t, dim, one, source)
            tally.check("index_add_", t, dim, one, source, alpha=2)
            tally.check("index_copy", t, dim, one, source)
    finish(tally, 0.5)


def test_factories():
    tally = Tally()
    for name in ("zeros", "ones", "empty", "rand", "randn"):
        function = getattr(torch, name)
        for args in [(2, 3), ((2, 3),), (), ([],), (0,), (torch.Size([2]),), (-1,)]:
            for kwargs in [
                {},
                {"dtype": torch.float64},
                {"device": "cpu"},
                {"dtype": torch.int64},
                {"requires_grad": True},
                {"device": torch.device("cpu")},
            ]:
                tally.check(function, *args, **kwargs)
        tally.check(function, size=(2, 3))
    for value in (1, 1.5, True):
        tally.check(torch.full, (2, 3), value)
        tally.check(torch.full, (2, 3), fill_value=value, dtype=torch.int32)
        tally.check(torch.tensor, value)
        tally.check(torch.tensor, [value, 2])
        tally.check(torch.tensor, [[value, 2], [3, 4]], dtype=torch.float16)
    tally.check(torch.tensor, [[1, 2], [3]])
    tally.check(torch.tensor, [[1, 2], 3])
    tally.check(torch.tensor, [])
    for args in [(5,), (1, 5), (1, 10, 3), (5, 1, -1), (0.5, 3), (0, 1, 0.3), (5, 1), (0,), (10, 0, -3), (2.5,), (0, 1, 0)]:
        if args[2:] == (0,) and torch.__version__ < "2.13":
            continue  # older ones divide by zero and take the process down
        tally.check(torch.arange, *args)
        tally.check(torch.arange, *args, dtype=torch.float32)
        if args[2:] == (0.3,) and torch.__version__ < "2.13":
            continue  # the same: as an integer the step is 0
        tally.check(torch.arange, *args, dtype=torch.int64, device="cpu")
    tally.check(torch.arange, end=5)
    tally.check(torch.arange, start=1, end=5)
    tally.check(torch.linspace, 0, 1, 5)
    tally.check(torch.linspace, 0, 1, steps=7, dtype=torch.float64)
    tally.check(torch.eye, 3)
    tally.check(torch.eye, 3, 4, dtype=torch.int64)
    tally.check(torch.randint, 5, (2, 3))
    tally.check(torch.randint, 0, 5, (2, 3))
    tally.check(torch.randint, low=0, high=5, size=(2, 3), dtype=torch.int32)
    tally.check(torch.randint, high=5, size=(2,))
    tally.check(torch.randperm, 5)
    for t in tensors(dtypes=[torch.float32, torch.int64]):
        for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"):
            tally.check(getattr(torch, name), t)
            tally.check(getattr(torch, name), t, dtype=torch.float64)
            tally.check(getattr(torch, name), t, memory_format=torch.contiguous_format)
        tally.check(torch.full_like, t, 2)
        tally.check("new_zeros", t, 2, 3)
        tally.check("new_ones", t, (2, 3), dtype=torch.int64)
        tally.check("new_empty", t, [2])
        tally.check("new_full", t, (2, 3), 1.5)
        tally.check("new_tensor", t, [1, 2])
    tally.check(torch.zeros_like, torch.ones(2, requires_grad=True))
    finish(tally, 0.8)


def test_norms():
    tally = Tally()
    for shape in [(3,), (2, 3), (2, 4, 3), (2, 3, 4, 3)]:
        for x in layouts(shape):
            tally.check(F.layer_norm, x, (3,))
            tally.check(F.layer_norm, x, (3,), torch.ones(3), torch.ones(3), 1e-6)
            tally.check(F.layer_norm, x, (3,), weight=torch.ones(3, requires_grad=True), bias=None)
            tally.check(F.layer_norm, x, (4, 3))
            tally.check(F.rms_norm, x, (3,))
            tally.check(F.rms_norm, x, (3,), torch.ones(3), 1e-6)
    for shape in [(2, 4), (2, 4, 3), (2, 4, 3, 3), (2, 4, 1, 1)]:
        for x in layouts(shape):
            tally.check(F.group_norm, x, 2)
            tally.check(F.group_norm, x, 2, torch.ones(4), torch.ones(4))
            for training in (True, False):
                tally.check(F.batch_norm, x, torch.zeros(4), torch.ones(4), torch.ones(4), torch.ones(4), training)
                tally.check(F.batch_norm, x, torch.zeros(4), torch.ones(4), training=training)
                tally.check(F.batch_norm, x, None, None, training=training)
    finish(tally, 0.4)


def test_embedding_and_dropout():
    tally = Tally()
    for w in layouts((7, 3)) + layouts((7, 3), requires_grad=True)[:1]:
        for shape in [(), (2,), (2, 4), (0,)]:
            for index in layouts(shape, torch.int64):
                tally.check(F.embedding, index, w)
                tally.check(F.embedding, index, w, 0)
                tally.check(F.embedding, index, w, padding_idx=-1)
                tally.check(F.embedding, index, w, 9)
                tally.check(F.embedding, index, w, None, None, 2.0, False, False)
    for t in tensors(dtypes=F32):
        for p in (0.0, 0.3, 1.0):
            for training in (True, False):
                tally.check(F.dropout, t, p, training)
                tally.check(F.dropout, t, p=p, training=training, inplace=False)
                tally.check(torch.dropout, t, p, training)
    finish(tally, 0.7)


def test_convolutions():
    tally = Tally()
    for x, w, bias in [
        ((2, 3, 8), (4, 3, 3), 4),
        ((3, 8), (4, 3, 3), 4),
        ((2, 3, 8, 9), (4, 3, 3, 3), 4),
        ((3, 8, 9), (4, 3, 3, 2), 4),
        ((2, 1, 8, 8), (4, 1, 1, 1), 4),
        ((1, 3, 1, 1), (1, 3, 1, 1), 1),
        ((2, 3, 5, 6, 7), (4, 3, 3, 3, 3), 4),
        ((2, 4, 8, 8), (4, 1, 3, 3), 4),
        ((2, 4, 1, 1), (2, 4, 1, 1), 2),
        ((1, 1, 5, 1), (1, 1, 1, 1), 1),
    ]:
        for function in [(F.conv1d, F.conv2d, F.conv3d)[len(w) - 3]]:
            for t in layouts(x)[:5]:
                for kernel in layouts(w)[:1] + (layouts(w)[-1:] if t.is_contiguous() else []):
                    tally.check(function, t, kernel)
                    tally.check(function, t, kernel, torch.ones(bias), 2, 1)
                    tally.check(function, t, kernel, torch.ones(bias), stride=2, padding=1, dilation=2)
                    tally.check(function, t, kernel, None, 1, 1, 1, 4)
                    tally.check(function, t, kernel, padding="same")
    finish(tally, 0.05)


def test_pooling():
    tally = Tally()
    for shape in [(2, 3, 8), (3, 8), (2, 3, 8, 9), (3, 8, 9), (2, 3, 4, 5, 6), (2, 1, 8, 8), (1, 3, 1, 1)]:
        for t in layouts(shape):
            for rank in {len(shape) - 1, len(shape) - 2} & {1, 2, 3}:
                for kind in ("max", "avg"):
                    function = getattr(F, f"{kind}_pool{rank}d")
                    tally.check(function, t, 2)
                    tally.check(function, t, 3, 2, 1)
                    tally.check(function, t, kernel_size=3, stride=2, padding=1, ceil_mode=True)
                    tally.check(function, t, (2,) * rank, (1,) * rank)
                function = getattr(F, f"adaptive_avg_pool{rank}d")
                tally.check(function, t, 1)
                tally.check(function, t, (2,) * rank)
    finish(tally, 0.1)


def test_pad_and_losses():
    tally = Tally()
    for t in tensors(shapes=[(), (3,), (1, 3), (2, 0), (2, 3), (2, 1, 4, 1), (2, 3, 4, 5)], dtypes=[torch.float32, torch.int64]):
        tally.check(F.pad, t, (1, 2))
        tally.check(F.pad, t, (0, 0))
        tally.check(F.pad, t, (1, 1, 0, 2), "constant", 1)
        tally.check(F.pad, t, (1, 1, 0, 2), value=0.5)
        tally.check(F.pad, t, (-1, 1))
        for function in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
            tally.check(function, t, t)
            tally.check(function, t, t, reduction="sum")
            tally.check(function, t, t, reduction="none")
    for x, y in [((2, 5), (2,)), ((5,), ()), ((2, 5, 3), (2, 3)), ((2, 5, 3, 3), (2, 3, 3)), ((2, 5), (3,))]:
        for t in layouts(x) + layouts(x, requires_grad=True)[:1]:
            target = torch.zeros(y, dtype=torch.int64)
            for function in (F.cross_entropy, F.nll_loss):
                tally.check(function, t, target)
                tally.check(function, t, target, torch.ones(5))
                tally.check(function, t, target, reduction="sum", ignore_index=0)
                tally.check(function, t, target, reduction="none")
            tally.check(F.cross_entropy, t, target, label_smoothing=0.1)
    finish(tally, 0.5)


def test_attention():
    def made(n, dtype):
        flat = torch.rand(2, n, 4, 8).to(dtype)
        return [torch.rand(2, 4, n, 8).to(dtype), flat.transpose(1, 2)]

    tally = Tally()
    for length, keys in [(5, 5), (5, 7), (1, 7), (1, 1)]:
        for dtype in (torch.float32, torch.bfloat16):
            for q, k, v in itertools.product(made(length, dtype), made(keys, dtype), made(keys, dtype)):
                tally.check(F.scaled_dot_product_attention, q, k, v)
                tally.check(F.scaled_dot_product_attention, q, k, v, is_causal=length == keys)
                tally.check(F.scaled_dot_product_attention, q.detach().requires_grad_(), k, v, scale=0.5)
                tally.check(F.scaled_dot_product_attention, q, k, v, dropout_p=0.1)
                tally.check(F.scaled_dot_product_attention, q, k, v, attn_mask=torch.ones(length, keys, dtype=torch.bool))
    packed = torch.rand(2, 5, 3, 4, 8)
    q, k, v = (packed[:, :, i].transpose(1, 2) for i in range(3))
    tally.check(F.scaled_dot_product_attention, q, k, v)
    tally.check(F.scaled_dot_product_attention, q, k, v, torch.zeros(2, 1, 5, 5))
    tally.check(F.scaled_dot_product_attention, q, k, v, torch.zeros(2, 1, 1, 5))
    tally.check(F.scaled_dot_product_attention, q, k, v, torch.zeros(3, 1, 5, 5))
    packed = torch.rand(3, 2, 4, 5, 8)
    tally.check(F.scaled_dot_product_attention, *packed.unbind(0))
    fused = torch.rand(2, 5, 96).split(32, 2)
    tally.check(F.scaled_dot_product_attention, *(part.view(2, 5, 4, 8).transpose(1, 2) for part in fused))
    q = torch.rand(1, 1, 1, 8)
    tally.check(F.scaled_dot_product_attention, q, q, q)
    q = torch.rand(2, 4, 3, 1)
    tally.check(F.scaled_dot_product_attention, q, q, q)
    finish(tally, 0.4)


def test_on_cuda_as_fake_says():
    """No GPU here: what the rules say of CUDA tensors is compared with FakeTensor's word."""
    from oracle import engine, normal

    x, y, image, index = torch.rand(2, 3), torch.rand(3, 4), torch.rand(2, 3, 8, 8), torch.tensor([0, 1])
    checked = 0
    for target, args in [
        (torch.sin, (x,)),
        (torch.add, (x, 1)),
        (torch.add, (x.t(), x.t())),
        (torch.mm, (x, y)),
        (torch.matmul, (image, image)),
        (F.linear, (x, y.t(), torch.ones(4))),
        (torch.sum, (x, 0)),
        (torch.max, (x, 0)),
        (F.softmax, (x, -1)),
        (torch.cat, ([x, x], 0)),
        ("view", (x, -1)),
        ("reshape", (x.t(), -1)),
        (operator.getitem, (x, index)),
        (operator.getitem, (x, (slice(None), index))),
        (F.layer_norm, (x, (3,))),
        (F.embedding, (index, x)),
        (torch.zeros_like, (x.t(),)),
        ("to", (x, torch.float16)),
        ("contiguous", (x.t(),)),
        ("masked_fill", (x, x > 0, 0.0)),
        (torch.where, (x > 0, x, 0.0)),
        (torch.cumsum, (x, 0)),
        (torch.topk, (x, 2)),
        (torch.sort, (x,)),
        (F.gelu, (x,)),
        (torch.stack, ([x, x],)),
        ("repeat", (x, 2, 2)),
        (torch.tril, (x,)),
        ("gather", (x, 1, torch.zeros(2, 2, dtype=torch.int64))),
        (torch.var, (x,)),
        (F.cross_entropy, (x, index)),
        (F.mse_loss, (x, x)),
        ("new_zeros", (x, 2)),
        (F.dropout, (x, 0.5, False)),
        ("float", (x,)),
        ("cpu", (x,)),
        ("mul_", (x, 2)),
        (F.conv2d, (image, torch.rand(4, 3, 3, 3))),
        ("flip", (x, 0)),
        ("split", (x, 1)),
        (torch.bmm, (image[0], image[0])),
        (torch.outer, (x[0], x[0])),
    ]:
        try:
            rule, fake = engine.compare_on("cuda:0", target, args)
        except RuntimeError as error:
            assert "not linked with support for cuda" in str(error)  # an op that asks the device itself
            continue
        if rule is not None:
            checked += 1
            assert normal(rule) == normal(fake), (target, rule, fake)
    assert checked >= 38
