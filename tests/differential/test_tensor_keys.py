"""Tensors and other objects that hash by identity as keys of existing dicts: found through their own source, not pinned."""

import gc
import weakref
from collections import defaultdict

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


class Token:
    pass


@scenario(ops=["mul"])
def read_by_tensor():
    x, y = t(3), t(3, seed=1)
    table = {x: 2, y: 3}
    return Setup(lambda a: a * table[a], lambda: (x,))


@scenario(ops=["add"])
def absent_tensor():
    x, y = t(3), t(3, seed=1)
    table = {y: 3}

    def f(a):
        return a + (5 if a not in table else table.get(a)), table.get(a, "none")

    return Setup(f, lambda: (x,), changes=(lambda: table.__setitem__(x, 7), lambda: table.clear()))


@scenario(ops=["mul"], captures=(1, 1))
def writes_under_a_tensor():
    x = t(3)
    table = {}

    def f(a):
        table[a] = table.get(a, 0) + 1
        return a * 2

    return Setup(f, lambda: (x,), lambda: [list(table.values()), [k is x for k in table]])


@scenario(ops=["_set_grad_enabled", *["zeros_like", "mul", "add_"] * 3, "_set_grad_enabled"], captures=(1, 1))
def state_of_an_optimizer():
    params = [torch.nn.Parameter(t(3, seed=i)) for i in range(3)]
    state = defaultdict(dict)

    def f(rate):
        with torch.no_grad():
            for p in params:
                s = state[p]
                if len(s) == 0:
                    s["step"] = 0
                    s["sum"] = torch.zeros_like(p)
                s["step"] += 1
                s["sum"].add_(p * rate)
        return [state[p]["step"] for p in params]

    return Setup(f, lambda: (0.5,), lambda: [[s["step"], s["sum"]] for s in state.values()])


@scenario(ops=["mul"], captures=(1, 1))
def deletes_a_tensor():
    x, y = t(3), t(3, seed=1)
    table = {x: 1, y: 2}

    def f(a):
        had = a in table
        if had:
            del table[a]
        return a * 2, had, a in table

    return Setup(f, lambda: (x,), lambda: len(table))


@scenario(ops=["add"], captures=(1, 1))
def two_names_for_one_tensor():
    x = t(3)
    y = [t(3, seed=1)]
    table = {x: 1}

    def f(a, b):
        table[b] = 10
        return a + table[a]

    return Setup(f, lambda: (x, y[0]), lambda: list(table.values()), changes=(lambda: y.__setitem__(0, x),))


@scenario(ops=["mul"])
def objects_by_identity():
    tokens = [Token(), Token()]
    at = [0]
    table = {tokens[0]: 2, tokens[1]: 3}
    return Setup(lambda x, token: x * table[token], lambda: (t(3), tokens[at[0]]), changes=(lambda: at.__setitem__(0, 1),))


@scenario(ops=["mul"])
def iterated_after_a_lookup():
    token = Token()
    table = {token: 2, "b": 3}

    def f(x, key):
        n = table[key]
        return x * n, [v for v in table.values()], len(table)

    return Setup(f, lambda: (t(3), token))


class Hashed(torch.Tensor):
    def __hash__(self):
        return 7


@scenario(skip="*")
def class_with_its_own_hash():
    x = t(3).as_subclass(Hashed)
    table = {x: 2}
    return Setup(lambda a: a * table[a], lambda: (x,))


test_tensor_keys = cases.as_test(__name__)


def test_one_capture_serves_other_objects():
    table = {}

    def f(x, token):
        return x * table[token]

    graphs = []
    compiled = cdynamo.compile(f, backend=lambda gm, _: graphs.append(gm) or gm.forward)
    x = t(3)
    refs = []
    for _ in range(5):
        token = Token()
        table.clear()
        table[token] = 2
        assert torch.equal(compiled(x, token), x * 2)
        refs.append(weakref.ref(token))
    assert len(graphs) == 1
    table.clear()
    del token
    gc.collect()
    assert not any(r() for r in refs)


def test_tensors_that_are_keys_die():
    table = {}
    f = cdynamo.compile(lambda a: a * table[a], backend="eager")
    x = t(3)
    table[x] = 2
    f(x)
    ref = weakref.ref(x)
    table.clear()
    del x
    gc.collect()
    assert ref() is None


def test_many_keys():
    """Distinctness of n keys is one check, not n * n."""
    params = [torch.nn.Parameter(torch.zeros(1)) for _ in range(500)]
    table = {p: i for i, p in enumerate(params)}
    compiled = cdynamo.compile(lambda: sum(table[p] for p in params) + params[0], backend="eager", fullgraph=True)
    assert compiled().item() == sum(range(500)) == compiled().item()
    params[3] = params[4]
    assert compiled().item() == sum(range(500)) + 1
