import operator

import pytest
import torch
from oracle import Tally, layouts
from test_pointwise import finish, tensors

F32 = [torch.float32]


def some(requires_grad=False):
    return tensors(requires_grad, dtypes=F32)


CALLS = {
    "view": [(-1,), (2, -1), ((2, 3),), (torch.Size([3, 2]),), (torch.int32,), (1, -1), (6, 20), (2, 3, 20), (3, 1)],
    "reshape": [(-1,), (2, -1), ((2, 3),), (6, 20), (20, 6), (1, -1), (0,), (3, 2)],
    "flatten": [(), (1,), (0, 1), (-2, -1), (0,), (2, 3)],
    "ravel": [()],
    "unflatten": [(0, (1, -1)), (-1, (-1, 1)), (1, (3, 1)), (0, (2, 1))],
    "transpose": [(0, 1), (-1, -2), (0, -1), (0, 0)],
    "swapaxes": [(0, 1)],
    "swapdims": [(0, 1)],
    "t": [()],
    "adjoint": [()],
    "permute": [(0,), (1, 0), ((1, 0),), (0, 2, 3, 1), ((3, 1, 0, 2),), (-1, 0, 1), (0, 0)],
    "movedim": [(0, 1), (0, -1), ((0, 1), (1, 0)), ((0, 1), (-1, -2))],
    "moveaxis": [(1, 0)],
    "squeeze": [(), (0,), (-1,), ((0, 1),), (1,)],
    "unsqueeze": [(0,), (1,), (-1,), (2,), (-2,)],
    "expand": [(2, 3), ((4, 2, 3),), (-1, 3), (5, -1), (2, -1, 4, 5), (3,), (1, 1, 1), (2, 1, 3), (4, 1, 1, 3)],
    "broadcast_to": [((2, 3),), ((2, 2, 3),)],
    "narrow": [(0, 0, 1), (1, 1, 2), (-1, -1, 1), (0, 0, 0)],
    "select": [(0, 0), (1, -1), (-1, 2), (0, 5)],
    "split": [(1,), (2, 1), (2, -1), ((1, 2), 1), ((1, 1),), (10,)],
    "chunk": [(2,), (2, 1), (3, -1), (5,)],
    "tensor_split": [(2,), (3, 1)],
    "unbind": [(), (1,), (-1,)],
    "unfold": [(0, 2, 1), (1, 2, 1), (-1, 1, 2), (0, 0, 1)],
    "diagonal": [(), (1,), (-1,), (0, -1, -2), (0, 1, 2), (3,)],
    "detach": [()],
    "contiguous": [()],
    "clone": [()],
    "float": [()],
    "double": [()],
    "half": [()],
    "bfloat16": [()],
    "long": [()],
    "int": [()],
    "bool": [()],
    "cpu": [()],
    "type": [(torch.float64,), (torch.float32,)],
    "to": [
        (torch.float64,),
        (torch.float32,),
        ("cpu",),
        (torch.device("cpu"), torch.float16),
        ("cpu", torch.float32, False, True),
        (torch.float32, False, True),
    ],
}


@pytest.mark.parametrize("name", list(CALLS))
def test_views(name):
    tally = Tally()
    for t in some():
        for args in CALLS[name]:
            tally.check(name, t, *args)
            if hasattr(torch, name) and not isinstance(getattr(torch, name), torch.dtype) and name not in ("split", "type"):
                packed = args if name not in ("reshape", "permute") or isinstance(args[0], tuple) else (args,)
                tally.check(getattr(torch, name), t, *packed)
    for args in CALLS[name]:
        tally.check(name, torch.ones(2, 3, requires_grad=True), *args)
        tally.check(name, torch.ones(2, 3, requires_grad=True) * 1, *args)
        with torch.no_grad():
            tally.check(name, torch.ones(2, 3, requires_grad=True), *args)
    finish(tally, 0.9)


def test_keywords():
    tally = Tally()
    for t in some():
        tally.check("transpose", t, dim0=0, dim1=1)
        tally.check("flatten", t, start_dim=1)
        tally.check("permute", t, dims=(1, 0))
        tally.check(torch.unsqueeze, t, dim=0)
        tally.check(torch.unsqueeze, input=t, dim=0)
        tally.check("to", t, dtype=torch.float16)
        tally.check("to", t, device="cpu", dtype=torch.int64)
        tally.check("to", t, torch.float64, memory_format=torch.contiguous_format)
        tally.check("to", t, memory_format=torch.channels_last)
        tally.check("to", t, torch.ones(1, dtype=torch.float64))
        tally.check("contiguous", t, memory_format=torch.channels_last)
        tally.check("clone", t, memory_format=torch.contiguous_format)
        tally.check("view_as", t, torch.ones(t.shape))
        tally.check("expand_as", t, torch.ones(4, *t.shape))
        tally.check("type_as", t, torch.ones(2, dtype=torch.int32))
        tally.check(torch.chunk, t, 2, dim=-1)
        tally.check(torch.split, t, 2, dim=-1)
        tally.check(torch.split, t, [1, 2], -1)
        tally.check(torch.split, t, split_size_or_sections=1, dim=0)
        tally.check("requires_grad_", t)
        tally.check(getattr, t, "mT")
        tally.check(getattr, t, "data")
        tally.check(getattr, t, "real")
        tally.check("size", t)
        if t.dim() <= 2:
            tally.check(getattr, t, "T")
    finish(tally, 0.85)


INDICES = [
    0,
    -1,
    5,
    slice(None),
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    slice(2, 1),
    slice(-2, None),
    None,
    Ellipsis,
    (0, 0),
    (slice(None), 0),
    (Ellipsis, 0),
    (0, Ellipsis),
    (None, 0),
    (slice(None), None),
    (Ellipsis, None),
    (slice(None), slice(1, 3)),
    (0, slice(None), slice(None, None, 2)),
    (Ellipsis, slice(None, 2)),
    (None, Ellipsis, None),
    (),
    slice(None, 100),
    (slice(None), slice(None), 1),
    (0, 0, 0, 0),
    (0, 0, 0, 0, 0),
    [0, 1],
    (slice(None), [0, 0]),
    slice(0, 0),
]


def test_getitem_basic():
    tally = Tally()
    for t in some():
        for index in INDICES:
            tally.check(operator.getitem, t, index)
            tally.check("__getitem__", t, index)
    finish(tally, 0.95)


def test_getitem_tensors():
    tally = Tally()
    one = torch.tensor([0, 1, 0])
    two = torch.tensor([[0, 1, 0], [1, 0, 0]])
    tall = torch.zeros(2, 1, dtype=torch.int64)
    turned = torch.zeros(3, 2, dtype=torch.int64).t()
    everything = slice(None)
    indices = [
        one,
        two,
        tall,
        turned,
        (one,),
        (everything, one),
        (one, one),
        (tall, one),
        (everything, one, one),
        (one, everything, one),
        (Ellipsis, one),
        (one, Ellipsis),
        (0, one),
        (one, 0),
        (None, one),
        (one, None),
        (everything, 0, one),
        (one, everything, 0),
        (everything, turned),
        (turned, everything, turned),
        (slice(0, 1), one * 0),
        (everything, everything, two),
        (everything, two, everything, one),
        one.to(torch.int32),
        (everything, [0, 1], one[:2]),
    ]
    for shape in [(3,), (2, 3), (2, 2, 3), (2, 3, 4, 5), (2, 0), (2, 2, 2, 2, 2)]:
        for t in layouts(shape) + layouts(shape, requires_grad=True)[:1]:
            for index in indices:
                tally.check(operator.getitem, t, index)
    finish(tally, 0.9)


def test_setitem():
    tally = Tally()
    one = torch.tensor([0, 1, 0])
    for shape in [(3,), (2, 3), (2, 2, 3)]:
        for t in layouts(shape) + [x * 1 for x in layouts(shape, requires_grad=True)[:1]]:
            for index in [0, slice(None), Ellipsis, (Ellipsis, 0), one, (Ellipsis, one), t.detach() > 0.5, (0, one)]:
                for value in [
                    1,
                    1.5,
                    torch.tensor(2.0),
                    torch.ones(3),
                    torch.ones(1, 3),
                    torch.ones(2, 3),
                    torch.ones(3, dtype=torch.int64),
                    torch.ones(7),
                ]:
                    tally.check(operator.setitem, t, index, value)
    finish(tally, 0.5)


def test_boolean_index_is_unknown():
    from oracle import engine

    with pytest.raises(NotImplementedError):
        engine.infer_result(operator.getitem, (torch.ones(3), torch.ones(3, dtype=torch.bool)), {})
