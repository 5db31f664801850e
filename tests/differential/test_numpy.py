"""NumPy in captured functions: arrays as arguments and globals, tensors' .numpy(), what must break."""

import numpy as np
import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


def a(*shape, dtype=np.float64, start=1):
    return (np.arange(int(np.prod(shape)), dtype=dtype) + dtype(start)).reshape(shape)


# ---- captured ----------------------------------------------------------------------------------------------------------


@case(lambda: (a(3), a(3, start=4)), ops=4)
def operators(x, y):
    return x + y * 2 - y / 4


@case(lambda: (a(2, 3, dtype=np.int64), a(3, dtype=np.float32)))
def dtypes(x, y):
    return (
        x + 1,
        x + 1.5,
        x / 2,
        y * 2,
        y + x,
        x > 2,
        y == 2,
        -x,
        abs(x - 3),
        x & 1,
        ~(x > 2),
        x.astype(np.float32),
        x.astype(float),
        y.astype("int32"),
    )


@case(lambda: (a(2, 3),))
def attributes(x):
    return x.shape, x.ndim, x.size, x.dtype, x.itemsize, x.nbytes, len(x), type(x) is np.ndarray, isinstance(x, np.ndarray), x + 1


@case(lambda: (a(2, 3),))
def shapes(x):
    return (
        x.reshape(3, 2) + 0,
        x.T + 0,
        x.transpose(1, 0) + 1,
        x.ravel() * 1,
        np.expand_dims(x, 0) + 0,
        np.concatenate([x, x]),
        np.stack((x, x), axis=1),
    )


@case(lambda: (a(2, 3),))
def views_of_an_argument(x):
    return x.T, x.reshape(6), x[0], x[:, 1:], x, x[None]


@case(lambda: (a(2, 3, dtype=np.int64),))
def reductions(x):
    return x.sum(), x.sum(axis=0), np.max(x), x.min(axis=1), np.argmax(x), x.mean(), x.all(), np.any(x > 5), np.cumsum(x), x.prod(axis=1)


@case(lambda: (a(3),))
def scalars_of_arrays(x):
    s = x[1]
    return s, s + 1, s * x, type(s) is np.float64, x.sum() * 2, s > 1, -s


@case(lambda: (a(3),))
def a_scalar_is_a_copy(x):
    s = x[0]
    x[0] = 7
    return s, x[0], x


@case(lambda: (a(2, 3), np.array([1, 0])))
def indexing(x, i):
    return x[1, 2], x[i], x[:, ::2], x[..., 0], x[[0, 1], [1, 2]], x[i, i], x[-1]


@case(lambda: (a(4), a(4, start=10)))
def writes_to_arguments(x, y):
    x[0] = 5
    x[1:3] = y[:2]
    y += 1
    y *= x
    return x + y


@case(lambda: (a(4, dtype=np.float32),))
def writes_through_a_view(x):
    v = x[1:]
    v += 1
    x[2] = 9
    return v, x


@case(lambda: (t(3),))
def of_a_tensor(x):
    y = x.numpy()
    return y + 1, y * y, y


@case(lambda: (t(3),))
def writes_through_numpy(x):
    y = x.numpy()
    y += 1
    y[0] = 0
    return x * 2, y


@case(lambda: (a(3),))
def to_tensors(x):
    y = torch.from_numpy(x)
    z = torch.as_tensor(x, dtype=torch.float32)
    c = torch.tensor(x)
    y.add_(1)
    return y, z, c, x + 1, torch.tensor(x, dtype=torch.int64)


@case(lambda: (t(3),))
def there_and_back(x):
    return torch.from_numpy(np.sqrt((x * 4).numpy()) * 2) + x


@case(lambda: (t(2, 3), 3))
def made_inside(x, n):
    return (
        x + torch.from_numpy(np.ones((2, n), dtype=np.float32)),
        np.zeros(n),
        np.arange(n),
        np.full((2,), 1.5),
        np.eye(2),
        np.array([1, 2, n]),
        np.linspace(0, 1, 5),
    )


@case(lambda: (a(3), a(3, start=2)))
def elementwise(x, y):
    return (
        np.maximum(x, y),
        np.where(x > 2, x, y),
        np.square(x),
        np.sqrt(x * x),
        np.abs(-x),
        np.clip(x, 1.5, 2.5),
        np.sign(x),
        np.floor(x / 2),
        np.isnan(x),
    )


@case(lambda: (a(2, 3), a(3, 2)))
def products(x, y):
    return x @ y, np.dot(x, y), np.outer(x[0], x[1]), np.einsum("ij,jk->ik", x, y), np.trace(x @ y)


@case(lambda: (a(2, 3),))
def several_results(x):
    u, v, w = np.split(x, 3, axis=1)
    p, q = np.meshgrid(x[0], x[1])
    return u, w + v, p + q


@scenario(after_change=(0, None, None))
def arrays_of_the_world():
    world = {"x": a(3)}

    def values():
        world["x"] = a(3, start=5)

    def shape():
        world["x"] = a(4)

    def dtype():
        world["x"] = a(3, dtype=np.float32)

    return Setup(lambda y: world["x"] * 2 + y.numpy(), lambda: (torch.ones(1),), changes=[values, shape, dtype])


@scenario(after_change=(None,))
def another_kind_of_argument():
    given = [a(3)]

    def change():
        given[0] = 3.0

    return Setup(lambda x: (x * 2 + 1, type(x).__name__), lambda: (given[0],), changes=[change])


@case(lambda: (lambda x: (x, x))(a(3)))
def one_array_twice(x, y):
    x += 1
    return y * 2, x is y


@case(lambda: (t(4), np.int64(3), np.float32(0.5), np.bool_(True)), ops=["add", "mul"])
def scalars_as_constants(x, n, f, b):
    return (x + n) * f if b else x, n + 1, f * 2, n % 2, type(n + 1) is np.int64, range(n), [1, 2, 3, 4][n]


@case(lambda: (a(3, dtype=np.float32), np.float64(1.5), np.int8(2)))
def scalars_with_arrays(x, f, n):
    return x * f, f + x, x * n, np.array([f, f]), np.add(x, n), x[n], x > f, np.float32(2) * x


@scenario(after_change=(None, None))
def scalars_that_change():
    given = [np.int64(3)]

    def value():
        given[0] = np.int64(4)

    def kind():
        given[0] = np.int32(4)

    return Setup(lambda x: (x + given[0], given[0] * 2), lambda: (t(3),), changes=[value, kind])


@case(lambda: (t(3),))
def limits_of_types(x):
    return x + np.finfo(np.float32).eps, np.iinfo(np.int16).max, np.pi, np.float32(2) * 2, np.dtype("int32"), np.issubdtype(np.int32, np.integer)


# ---- breaks ------------------------------------------------------------------------------------------------------------


@case(lambda: (a(3), t(3)), skip="*")
def unknown_functions(x, y):
    return np.unique(x), y + 1, np.argsort(x), np.nonzero(x), x.tolist(), float(x[0]), x.item(1)


@case(lambda: (a(3, dtype=np.int64), t(3)), skip="NumpyCall")
def by_value(x, y):
    return x // 2, x % 2, x**2, y + 1, np.floor_divide(x, 2)


@case(lambda: (a(3), t(3)), skip="DataDependentBranch")
def a_branch(x, y):
    if x[0] > 0:
        return y + 1
    return y - 1


@case(lambda: (a(3), t(3)), skip="*")
def mixed_with_tensors(x, y):
    return y + 1, y * torch.from_numpy(x), np.multiply(x, 2), np.float64(2) * y, [v + 1 for v in x]


@case(lambda: (a(3), t(3)), skip="*")
def that_raises(x, y):
    try:
        return x + np.ones(4)
    except ValueError as error:
        return y + 1, str(error)


@case(lambda: (t(3, grad=True),), skip="*")
def a_tensor_with_grad(x):
    try:
        return x.numpy()
    except RuntimeError as error:
        return x + 1, str(error)


def frozen():
    made = a(3)
    made.flags.writeable = False
    return made


@case(lambda: (frozen(), a(3)[::-1], np.array(["x", "y"]), np.array([1, 2], dtype=np.uint32), t(3)), skip="*")
def odd_arrays(x, y, z, w, u):
    return x + 1, y + 1, z == "x", w + 1, u + 1


@scenario(skip="*")
def numpy_random():
    np.random.seed(3)

    def f(x):
        return x + torch.from_numpy(np.random.rand(3)), np.random.randint(10)

    return Setup(f, lambda: (t(3),), watch=lambda: int(np.random.get_state()[2]), changes=[lambda: np.random.seed(4)])


@scenario(skip="NumpyCall")
def not_traced():
    cdynamo.config.trace_numpy = False
    return Setup(lambda x, y: (x + 1, y + 1), lambda: (a(3), t(3)), cleanup=lambda: delattr(cdynamo.config, "trace_numpy"))


@case(lambda: (a(3), t(3)), skip="UserBreak")
def carried_over_a_break(x, y):
    z = x * 2
    v = x[1:]
    w = y.numpy()
    torch._dynamo.graph_break()
    v += 1
    return z + 1, x, w * 2


test = cases.as_test(__name__)
