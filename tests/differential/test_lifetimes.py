"""Captures do not keep the user's objects alive, and do not leak."""

import gc
import sys
import weakref

import pytest
import torch
from differ import t

import cdynamo


@pytest.fixture(autouse=True)
def strict():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


def compiled(fn):
    return cdynamo.compile(fn, backend="eager")


def gone(make, use):
    """Whether what make() gives dies after use(it), with the capture still there."""
    thing = make()
    ref = weakref.ref(thing)
    use(thing)
    del thing
    gc.collect()
    return ref() is None


def test_input_tensor_dies():
    f = compiled(lambda x: x * 2)
    assert gone(lambda: t(3), f)
    assert torch.equal(f(t(3)), t(3) * 2)


def test_output_tensor_dies():
    f = compiled(lambda x: [x * 2])
    out = f(t(3))
    ref = weakref.ref(out[0])
    del out
    assert ref() is None


def test_input_module_dies():
    f = compiled(lambda m, x: m(x))
    assert gone(lambda: torch.nn.Linear(3, 3), lambda m: f(m, t(2, 3)))


def test_compiled_module_dies():
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    ref, weight = weakref.ref(module), weakref.ref(module[0].weight)
    call = cdynamo.compile(module, backend="eager")
    call(t(2, 3))
    del call, module
    gc.collect()
    assert ref() is None and weight() is None


def test_object_and_list_die():
    class Box:
        def __init__(self):
            self.items = [t(3)]

    f = compiled(lambda b: b.items[0] * 2)
    assert gone(Box, f)


def test_closure_tensor_dies():
    def make():
        w = t(3)

        def f(x):
            return x * w

        return f, weakref.ref(w)

    f, ref = make()
    compiled(f)(t(3))
    assert ref() is not None
    del f
    gc.collect()
    assert ref() is None


def test_function_dies():
    def make():
        def f(x):
            return x + 1

        return f

    f = make()
    ref = weakref.ref(f)
    compiled(f)(t(3))
    del f
    gc.collect()
    assert ref() is None


def test_intermediate_dies_during_the_call_in_eager_order():
    f = compiled(lambda x: (x * 2).sum())
    before = len([o for o in gc.get_objects() if isinstance(o, torch.Tensor)])
    f(t(3))
    gc.collect()
    assert len([o for o in gc.get_objects() if isinstance(o, torch.Tensor)]) <= before


def test_skipped_frame_keeps_nothing():
    f = compiled(lambda x: x.sum().item())
    assert gone(lambda: t(3), f)


def test_recompiles_keep_nothing():
    f = compiled(lambda x, n: x * n)
    for n in range(5):
        assert gone(lambda: t(3), lambda x, n=n: f(x, n))


def test_exception_keeps_nothing():
    def f(x):
        raise ValueError(x.shape)

    def use(x):
        with pytest.raises(ValueError):
            compiled(f)(x)

    assert gone(lambda: t(3), use)


def test_refcounts_of_inputs_are_stable():
    box = [t(3), {"k": t(3)}, (1, 2)]
    f = compiled(lambda b: b[0] * b[1]["k"] + b[2][1])
    f(box)
    before = [sys.getrefcount(o) for o in (box, *box, box[0], box[1]["k"])]
    for _ in range(50):
        f(box)
    assert [sys.getrefcount(o) for o in (box, *box, box[0], box[1]["k"])] == before


def test_refcounts_of_constants_are_stable_over_captures():
    marker = "a text that nobody else has %d" % id(object)
    key = object()

    def f(x, d):
        return x * len(d[marker])

    d = {marker: [1, 2], key: 1}
    compiled(f)(t(3), d)
    cdynamo.reset()
    gc.collect()
    before = sys.getrefcount(marker), sys.getrefcount(key), sys.getrefcount(None) // 1000
    for _ in range(50):
        compiled(f)(t(3), d)
        cdynamo.reset()
    gc.collect()
    after = sys.getrefcount(marker), sys.getrefcount(key), sys.getrefcount(None) // 1000
    assert after == before


def _rss() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_memory_over_many_captures():
    def one(n):
        def f(x):
            y = x
            for i in range(20):
                y = y * i + n
            return [y, {"k": y}, (n,)]

        compiled(f)(t(3))
        cdynamo.reset()

    for n in range(100):
        one(n)
    gc.collect()
    before = _rss()
    for n in range(400):
        one(n)
    gc.collect()
    assert _rss() - before < 8_000_000


def test_memory_over_many_failed_captures():
    def one(n):
        def f(x):
            y = x * n
            return y, y.sum().item()

        compiled(f)(t(3))
        cdynamo.reset()

    for n in range(100):
        one(n)
    before = _rss()
    for n in range(400):
        one(n)
    gc.collect()
    assert _rss() - before < 8_000_000


class Hashed:
    def __init__(self, number=0):
        self.number = number

    def __hash__(self):
        return hash(self.number)

    def __eq__(self, other):
        return isinstance(other, Hashed) and other.number == self.number


class Plain:
    def __init__(self, number=0):
        self.number = number


def into_a_set(objects):
    return len(set(broken_pairs(objects)))


def into_a_dict(objects):
    return len(dict((pair, 1) for pair in broken_pairs(objects)))


def added_in_a_loop(objects):
    seen = set()
    for pair in broken_pairs(objects):
        seen.add(pair)
        if pair not in seen:
            return -1
    return len(seen)


def broken_pairs(objects):
    for o in objects:
        torch._dynamo.graph_break()
        yield (o, (o, 1))


@pytest.mark.parametrize("kind", [Hashed, Plain])
@pytest.mark.parametrize("use", [into_a_set, into_a_dict, added_in_a_loop])
def test_tuples_that_were_keys_at_a_break_let_their_objects_die(kind, use):
    objects = [kind(n) for n in range(4)]
    refs = [weakref.ref(o) for o in objects]
    f = compiled(use)
    assert [f(objects), f(objects)] == [4, 4]
    objects.clear()
    assert [ref() for ref in refs] == [None] * 4


def test_objects_over_many_captures():
    def one():
        compiled(lambda x: (x * 2 + 1, [x], {"a": 1}))(t(3))
        cdynamo.reset()

    for _ in range(20):
        one()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(100):
        one()
    gc.collect()
    assert len(gc.get_objects()) - before < 100
