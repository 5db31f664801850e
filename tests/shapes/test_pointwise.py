import itertools
import operator

import pytest
import torch
import torch.nn.functional as F
from oracle import Tally, layouts

SHAPES = [(), (0,), (1,), (3,), (2, 3), (1, 3), (2, 0), (2, 1, 3), (2, 3, 4, 5), (2, 1, 4, 1), (1, 3, 1, 1), (2, 3, 2, 2, 2)]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool]

UNARY = [
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "erf",
    "erfc",
    "erfinv",
    "sigmoid",
    "reciprocal",
    "neg",
    "abs",
    "floor",
    "ceil",
    "trunc",
    "frac",
    "round",
    "square",
    "sign",
    "relu",
    "isnan",
    "isinf",
    "isfinite",
    "logical_not",
    "bitwise_not",
    "nan_to_num",
    "positive",
    "deg2rad",
    "rad2deg",
    "signbit",
    "lgamma",
    "digamma",
    "sgn",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "atan2",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "hypot",
    "logaddexp",
    "xlogy",
    "rsub",
    "true_divide",
]
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor"]
INPLACE_OPERATORS = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor"]


def finish(tally, rate=0.6):
    assert not tally.wrong, tally.report()
    total = tally.paths["rule"] + tally.paths["fake"] + tally.paths["memo"]
    assert tally.paths["rule"] >= rate * total, tally.not_rule[:20]


def tensors(requires_grad=False, shapes=SHAPES, dtypes=DTYPES):
    for shape in shapes:
        for dtype in dtypes:
            yield from layouts(shape, dtype, requires_grad)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    tally = Tally()
    for t in tensors():
        tally.check(getattr(torch, name), t)
    for t in tensors(True, dtypes=[torch.float32]):
        tally.check(name, t)
        tally.check(name, t.detach() * 1)
        if hasattr(torch.Tensor, name + "_") and name != "positive":
            tally.check(name + "_", t.detach())
            tally.check(name + "_", t)
    with torch.no_grad():
        tally.check(name, torch.ones(2, requires_grad=True))
    finish(tally, 0.6)


PAIRS = [
    ((), ()),
    ((), (3,)),
    ((3,), (1,)),
    ((2, 3), (3,)),
    ((2, 3), (2, 3)),
    ((2, 1), (1, 3)),
    ((2, 3, 4, 5), (2, 3, 4, 5)),
    ((2, 3, 4, 5), (3, 1, 5)),
    ((2, 3, 4, 5), (1, 3, 1, 1)),
    ((0, 3), (1, 3)),
    ((2, 3), (4,)),
    ((1, 1), (2, 1)),
]


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    tally = Tally()
    function = getattr(torch, name)
    for a, b in PAIRS:
        for x, y in itertools.product(layouts(a), layouts(b)):
            tally.check(function, x, y)
    for da, db in itertools.product(DTYPES, DTYPES):
        for a, b in [((2, 3), (3,)), ((2, 3), ()), ((), (2,)), ((), ())]:
            tally.check(function, layouts(a, da)[0], layouts(b, db)[0])
    for t in tensors(shapes=[(), (3,), (2, 3), (2, 1, 3), (2, 3, 4, 5)]):
        for s in (2, 2.5, True):
            tally.check(function, t, s)
    g = torch.ones(2, 3, requires_grad=True)
    tally.check(function, g, torch.ones(3))
    tally.check(function, torch.ones(3), g)
    if hasattr(torch.Tensor, name + "_"):
        for x, y in itertools.product(layouts((2, 3)), layouts((3,))):
            tally.check(name + "_", x, y)
        tally.check(name + "_", torch.ones(2, 3), g)
        tally.check(name + "_", torch.ones(2, 3, dtype=torch.int64), 2)
        tally.check(name + "_", torch.ones(2, 3, dtype=torch.int64), 2.5)
    finish(tally, 0.0 if name in ("bitwise_and", "bitwise_or", "bitwise_xor") else 0.6)


@pytest.mark.parametrize("name", OPERATORS + INPLACE_OPERATORS)
def test_operators(name):
    tally = Tally()
    function = getattr(operator, name)
    for t in tensors(shapes=[(), (3,), (2, 3), (2, 3, 4, 5)]):
        for s in (2, 2.5, True, -1):
            tally.check(function, t, s)
            if not name.startswith("i"):
                tally.check(function, s, t)
    for x, y in itertools.product(layouts((2, 3), requires_grad=True), layouts((3,))):
        tally.check(function, x, y)
        tally.check(function, x * 1, y)
    finish(tally)


@pytest.mark.parametrize(
    "name",
    [
        "__add__",
        "__radd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__rmul__",
        "__truediv__",
        "__rtruediv__",
        "__floordiv__",
        "__rfloordiv__",
        "__mod__",
        "__pow__",
        "__rpow__",
        "__eq__",
        "__lt__",
        "__and__",
        "__or__",
        "__iadd__",
        "__imul__",
        "__neg__",
        "__invert__",
    ],
)
def test_dunder_methods(name):
    tally = Tally()
    rest = () if name in ("__neg__", "__invert__") else (2,)
    for t in tensors(shapes=[(), (2, 3), (2, 3, 4, 5)]):
        tally.check(name, t, *rest)
        tally.check(getattr(torch.Tensor, name), t, *rest)
    finish(tally, 0.5)


ACTIVATIONS = [
    "relu",
    "leaky_relu",
    "elu",
    "hardtanh",
    "relu6",
    "hardsigmoid",
    "hardswish",
    "silu",
    "mish",
    "selu",
    "celu",
    "softplus",
    "tanh",
    "sigmoid",
    "gelu",
]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    tally = Tally()
    function = getattr(F, name)
    for t in tensors(dtypes=[torch.float32, torch.bfloat16, torch.int64]):
        tally.check(function, t)
    tally.check(function, torch.ones(2, 3, requires_grad=True))
    if name in ("relu", "leaky_relu", "elu", "silu", "relu6", "hardtanh", "mish", "hardswish"):
        tally.check(function, torch.ones(2, 3), inplace=True)
        tally.check(function, torch.ones(2, 3), inplace=False)
        tally.check(function, torch.ones(2, 3, requires_grad=True) * 1, inplace=True)
    if name == "leaky_relu":
        tally.check(function, torch.ones(2, 3), 0.2, True)
        tally.check(function, torch.ones(2, 3), negative_slope=0.2)
    if name == "gelu":
        tally.check(function, torch.ones(2, 3), approximate="tanh")
    finish(tally, 0.6)


def test_clamp():
    tally = Tally()
    for t in tensors():
        tally.check(torch.clamp, t, 0, 1)
        tally.check(torch.clamp, t, min=0.5)
        tally.check("clamp", t, max=1)
        tally.check("clamp_", t, 0, 1)
        tally.check("clamp_min", t, 0)
        tally.check(torch.clamp_max, t, 0.5)
    for x, y in itertools.product(layouts((2, 3)), layouts((3,))):
        tally.check(torch.clamp, x, y)
        tally.check(torch.clamp, x, max=y)
        tally.check(torch.clamp, x, y, y)
    finish(tally)


def test_where_and_friends():
    tally = Tally()
    for x, y in itertools.product(layouts((2, 3)), layouts((2, 3), torch.float64) + layouts((3,)) + layouts((2, 1))):
        c = x > 0.5
        for cond in layouts((2, 3), torch.bool) + layouts((3,), torch.bool) + [c]:
            tally.check(torch.where, cond, x, y)
            tally.check(torch.where, cond, x, 0.0)
            tally.check(torch.where, cond, 1, y)
            tally.check("where", x, cond, y)
    tally.check(torch.where, torch.ones(2, dtype=torch.bool), 1.0, 0.0)
    tally.check(torch.where, torch.ones(2, dtype=torch.bool), 1, 0.5)
    for x in layouts((2, 3)) + layouts((2, 3, 4, 5)):
        for y in layouts(tuple(x.shape)):
            tally.check(torch.lerp, x, y, 0.5)
            tally.check(torch.lerp, x, y, y)
            tally.check(torch.addcmul, x, y, x)
            tally.check(torch.addcdiv, x, y, y, value=2)
            tally.check("addcmul_", x, y, x)
    finish(tally, 0.9)


def test_masked_fill():
    tally = Tally()
    for x in layouts((2, 3)) + layouts((2, 3, 4, 5)) + layouts((3,)) + layouts((1, 3)) + layouts((2, 1, 3)):
        for mask in layouts((2, 3), torch.bool) + layouts(tuple(x.shape), torch.bool) + layouts((), torch.bool):
            tally.check("masked_fill", x, mask, 0.0)
            tally.check(torch.masked_fill, x, mask, -1)
            tally.check("masked_fill_", x, mask, float("-inf"))
            tally.check("masked_fill", x, mask, torch.tensor(1.0))
    tally.check("masked_fill", torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bool), 0.5)
    finish(tally, 0.8)


def test_overwrites():
    tally = Tally()
    for x in layouts((2, 3)):
        for y in layouts((3,)) + layouts((2, 3), torch.int64):
            tally.check("copy_", x, y)
        tally.check("fill_", x, 1.0)
        tally.check("zero_", x)
        tally.check("uniform_", x, -1, 1)
        tally.check("normal_", x, mean=0.0, std=1.0)
    tally.check("copy_", torch.ones(3), torch.ones(3, requires_grad=True))
    finish(tally, 0.9)
