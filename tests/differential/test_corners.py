"""Corners: identity across calls, cycles, emission limits, binding errors, odd argument types, state left behind."""

import enum
import gc

import numpy as np
import torch
from differ import Cases, Setup, t
from torch import nn

cases = Cases()
case, scenario = cases.case, cases.scenario


class Node:
    def __init__(self, name):
        self.name = name
        self.links = []


class StrKind(str, enum.Enum):
    A = "a"
    B = "b"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Perm(enum.Flag):
    R = 1
    W = 2


class MyInt(int):
    pass


class MyStr(str):
    def shout(self):
        return self.upper() + "!"


def across_calls(make):
    """What the calls give must be fresh objects: compares the identity of the results of three calls."""
    kept = []

    def watch():
        return [a is b for a in kept for b in kept]

    def run(result):
        kept.append(result[1])

    return Setup(make, lambda: (t(3),), watch=watch, after=run)


@scenario()
def fresh_list_each_call():
    return across_calls(lambda x: (x + 1, []))


@scenario()
def fresh_exception_each_call():
    return across_calls(lambda x: (x + 1, ValueError("a", 1)))


@scenario()
def fresh_object_each_call():
    return across_calls(lambda x: (x + 1, object()))


@scenario()
def fresh_split_each_call():
    return across_calls(lambda x: (x + 1, b"a b".split()))


@scenario()
def fresh_translation_table_each_call():
    return across_calls(lambda x: (x + 1, str.maketrans("a", "b")))


@scenario()
def fresh_function_each_call():
    return across_calls(lambda x: (x + 1, lambda: 3))


@scenario()
def fresh_default_list_of_function():
    return across_calls(lambda x: (x + 1, (lambda a=[]: a)()))


@scenario()
def fresh_iterator_each_call():
    return across_calls(lambda x: (x + 1, iter("ab")))


@case(lambda: (t(3),))
def method_result_is_mutable(x):
    parts = b"a b".split()
    parts.append(1)
    return x + 1, parts


@case(lambda: (t(3), Node("in")))
def object_cycles(x, node):
    a, b = Node("a"), Node("b")
    a.links.append(b)
    b.links.append(a)
    a.x = x + 1
    node.links.append(a)
    a.owner = node
    return a


@case(lambda: (t(3), [1], {"k": 1}))
def containers_hold_each_other(x, items, d):
    items.append(d)
    d["items"] = items
    d["self"] = d
    new = [items, d, x * 2]
    items.append(new)
    return new


@case(lambda: (t(3), [1, 2], [3]))
def contents_swapped(x, a, b):
    a[:], b[:] = b[:], a[:]
    return x + len(a)


@case(lambda: (t(3), {"a": [1]}))
def replaced_value_is_still_there(x, d):
    old = d["a"]
    d["a"] = [x]
    old.append(5)
    return old, x + 1


@case(lambda: (t(3), [[1], [2], [3]]))
def items_moved_around(x, items):
    items[0], items[2] = items[2], items[0]
    items[0].append("was last")
    first = items.pop(0)
    items.append(first)
    return x + 1


@case(lambda: (t(3), {"a": 1, "b": 2, "c": 3}))
def dict_churn(x, d):
    for k in list(d):
        v = d.pop(k)
        d[k.upper()] = v
    d["A"], d["a"] = 9, d.pop("A")
    del d["B"]
    d["B"] = 1
    del d["B"]
    return x + 1, list(d.items())


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_deleted_set_deleted(x, d):
    del d["a"]
    d["a"] = 3
    del d["a"]
    return x + 1, "a" in d, len(d), d.get("a")


@case(lambda: (t(3), {"a": 1, "b": 2}))
def dict_deleted_then_read_whole(x, d):
    del d["a"]
    return x + 1, dict(d), len(d)


@case(lambda: (t(3), Node("n")))
def attribute_deleted_and_order_kept(x, n):
    del n.name
    n.name = "again"
    n.other = x * 2
    return list(n.__dict__)


@case(lambda: (t(3),))
def equal_constants_of_other_types(x):
    return (
        x + 1,
        1,
        True,
        1.0,
        0.0,
        -0.0,
        (1,),
        (True,),
        (1.0,),
        (0.0, -0.0),
        "a",
        b"a",
        1 + 0j,
        frozenset([1]),
        frozenset([True]),
        [0.0, -0.0, 0, False],
    )


@case(lambda: (t(3), 0.0, -0.0))
def zero_arguments(x, a, b):
    return x + 1, a, b, -a, [a, b, 0.0, -0.0]


@case(lambda: (t(3),))
def many_outputs(x):
    return [x + i for i in range(300)], {f"k{i}": i for i in range(300)}


@case(lambda: (t(3),))
def deep_nesting(x):
    out = x + 1
    for i in range(60):
        out = [out, (i,)] if i % 2 else {"k": out}
    return out


@case(lambda: (t(3), list(range(600))))
def long_list_changed(x, items):
    items.reverse()
    items.append(x + 1)
    return len(items)


@case(lambda: (t(3),))
def unicode_names(ñ):
    größe = ñ + 1
    return {"schlüssel": größe, "日本": "語"}


@case(lambda: ())
def missing_argument(x):
    return x + 1


@case(lambda: (t(3), 1, 2))
def too_many(x, n):
    return x + n


@case(lambda: ((t(3),), {"q": 1}))
def unknown_keyword(x):
    return x + 1


@case(lambda: ((t(3),), {"x": 1}))
def argument_twice(x):
    return x + 1


@case(lambda: ((t(3),), {"a": 1}))
def positional_only_by_keyword(x, a, /):
    return x + a


for _case in cases.cases[-5:]:
    _case.graphs, _case.captures = 0, (0, 0)


@case(lambda: (t(3), StrKind.A))
def string_enum(x, k):
    return (
        x + 1,
        k == "a",
        k == StrKind.A,
        k in ("a", "c"),
        {"a": 1}.get(k),
        f"{k.value}",
        k.upper(),
        isinstance(k, str),
        k is StrKind.A,
        StrKind("b"),
        k.value + "z",
        k != "b",
    )


@case(lambda: (t(3), Level.LOW))
def int_enum(x, k):
    return x * k.value, k < Level.HIGH, k == 1, Level(2).name, int(k), k is Level.LOW


@case(lambda: (t(3), Level.LOW))
def int_enum_arithmetic(x, k):
    return k + 1, x + 1, [10, 20, 30][k]


@case(lambda: (t(3), Perm.R | Perm.W))
def flag_enum(x, p):
    return x + 1, bool(p & Perm.R), p == Perm.R


@scenario()
def int_subclass():
    return Setup(lambda x, n: (x * n, n + 1, type(n).__name__), lambda: (t(3), MyInt(4)))


@scenario()
def str_subclass():
    name = MyStr("hey")
    return Setup(lambda x, s: (x + 1, s.shout(), s + "b", s == "hey", len(s)), lambda: (t(3), name))


@scenario()
def numpy_scalar_argument():
    return Setup(lambda x, n: x * n, lambda: (t(3), np.float32(2.5)))


@scenario()
def numpy_array_argument():
    return Setup(lambda x, a: (x + 1, a), lambda: (t(3), np.arange(3)), watch=lambda: None)


@scenario()
def numpy_computed():
    return Setup(lambda x, a: x * float(a.sum()), lambda: (t(3), np.arange(3)))


for _name in ("numpy_computed",):
    next(c for c in cases.cases if c.name == _name).skip = "*"


@scenario(skip="*")
def finalizer_runs():
    log = []

    class Loud:
        def __del__(self):
            log.append("deleted")

    def f(x):
        loud = Loud()
        del loud
        log.append("after")
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: [gc.collect(), list(log)][1])


@scenario()
def grad_mode_after_uncaught():
    def f(x):
        with torch.no_grad():
            y = x * 2
            raise ValueError(y.requires_grad)

    return Setup(f, lambda: (t(3, grad=True),))


@scenario(graphs=0)
def grad_mode_left_off_by_raise():
    def f(x):
        torch.set_grad_enabled(False)
        raise ValueError("left off")

    return Setup(f, lambda: [torch.set_grad_enabled(True), (t(3, grad=True),)][1])


@scenario()
def effects_before_uncaught():
    log = []

    def f(x, n):
        log.append("start")
        n.name = "changed"
        n.links.append(x * 2)
        x.add_(1)
        raise KeyError("after effects")

    return Setup(f, lambda: (t(3), Node("n")), watch=lambda: log)


@case(lambda: (t(3, grad=True),))
def view_write_makes_base_require_grad(p):
    z = torch.zeros(3)
    v = z[0:2]
    before = z.requires_grad
    v.add_(p[:2])
    return z, v, before, z.requires_grad, v.requires_grad, (z * 2).requires_grad, z.is_leaf


@case(lambda: (t(3, grad=True),))
def base_write_makes_view_require_grad(p):
    z = torch.zeros(3)
    v = z[0:2]
    z.mul_(p)
    return z, v, v.requires_grad, (v * 2).requires_grad, v.is_leaf


@case(lambda: (t(3, grad=True),))
def inplace_makes_require_grad(p):
    z = torch.zeros(3)
    z += p
    w = torch.ones(3)
    w[1:] = p[:2]
    return z, z.requires_grad, w, w.requires_grad, w.is_leaf


@case(lambda: (t(3), t(3, seed=1)))
def inplace_changes_shape(x, y):
    x.unsqueeze_(0)
    y.resize_(1)
    return x.shape, x + 1, y.shape


@scenario(graphs=0)
def inplace_on_leaf_that_requires_grad():
    return Setup(lambda x: x.add_(1), lambda: (t(3, grad=True),))


@scenario()
def grad_read_and_cleared():
    p = nn.Parameter(t(3))

    def f(x):
        had = p.grad is None
        return (x * p).sum(), had

    return Setup(f, lambda: (t(3),), watch=lambda: p.grad, after=lambda out: out[0].backward())


next(c for c in cases.cases if c.name == "grad_read_and_cleared").captures = (1, 1)


@scenario(captures=(1, 1))
def module_attribute_moved():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(3, 3)
            with torch.no_grad():
                self.l.weight.fill_(0.5), self.l.bias.fill_(0.1)
            self.cache = {}
            self.steps = []

        def forward(self, x):
            y = self.l(x)
            self.cache["last"] = y
            self.steps.append(y.shape)
            return y

    m = M()
    return Setup(m, lambda: (t(2, 3),), watch=lambda: (m.cache, m.steps))


@scenario()
def buffer_registered_as_none_then_set():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", None)

        def forward(self, x):
            self.b = x * 2 if self.b is None else self.b + x
            return x + self.b

    m = M()
    return Setup(m, lambda: (t(3),), watch=lambda: (dict(m._buffers), list(m.__dict__)))


next(c for c in cases.cases if c.name == "buffer_registered_as_none_then_set").captures = (1, 1)


@scenario(skip="*")
def parameter_made_inside():
    class M(nn.Module):
        def forward(self, x):
            self.p = nn.Parameter(x.detach() * 2)
            return x + self.p

    m = M()
    return Setup(m, lambda: (t(3),), watch=lambda: (dict(m._parameters), "p" in m.__dict__))


test_corners = cases.as_test(__name__)
