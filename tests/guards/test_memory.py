"""Graphs that write to their inputs, for backends that turn writes into new values: how inputs share memory is guarded."""

import pytest
import torch

import cdynamo
from cdynamo._events import listening


def compiled(fn, captures):
    def run(*args):
        with listening(lambda kind, payload: captures.append(kind) if kind == "capture" else None):
            return call(*args)

    call = cdynamo.compile(fn, backend="aot_eager", fullgraph=True)
    return run


def pair(kind):
    base = torch.arange(16.0)
    return {
        "apart": lambda: (base[:4], torch.arange(4.0)),
        "one_storage": lambda: (base[:4], base[8:12]),
        "overlapping": lambda: (base[:4], base[2:6]),
        "overlapping_more": lambda: (base[:4], base[1:5]),
        "overlapping_before": lambda: (base[2:6], base[:4]),
        "equal_views": lambda: (base[:4], base[:4]),
        "same": lambda: (base[:4],) * 2,
    }[kind]()


KINDS = ("apart", "one_storage", "overlapping", "overlapping_more", "overlapping_before", "equal_views", "same")


def writes(a, b):
    a.mul_(2)
    return b + 1


def writes_through_a_view(a, b):
    a[1:].add_(3)
    return a * b


def writes_second(a, b):
    b.copy_(a + 1)
    return a * 1


@pytest.mark.parametrize("fn, seconds", [(writes, KINDS), (writes_through_a_view, ("apart", "overlapping")), (writes_second, ("overlapping",))])
@pytest.mark.parametrize("first", KINDS)
def test_every_change_of_overlap(fn, seconds, first):
    for second in seconds:
        cdynamo.reset()
        captures = []
        call = compiled(fn, captures)
        for kind in (first, second, first):
            expected, got = pair(kind), pair(kind)
            assert torch.equal(fn(*expected), call(*got)), (first, second, kind)
            assert all(torch.equal(e, g) for e, g in zip(expected, got)), (first, second, kind)
        disjoint = {first, second} <= {"apart", "one_storage"}
        assert len(captures) == (1 if disjoint or first == second else 2), (first, second)


def test_running_statistics():
    """Written to without being the operation's first operand."""

    def fn(x, mean, var, z):
        y = torch.nn.functional.batch_norm(x, mean, var, training=True)
        return y, z * 1

    captures = []
    call = compiled(fn, captures)
    for share in (False, True, False):
        results = []
        for run in (fn, call):
            memory = torch.ones(4)
            x = torch.arange(6.0).reshape(3, 2)
            args = (x, memory[:2], torch.ones(2), memory[1:3] if share else memory[2:])
            results.append((*run(*args), memory))
        assert all(torch.equal(e, g) for e, g in zip(*results)), share
    assert len(captures) == 2


def test_moved_storage_of_a_module():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.register_buffer("other", torch.ones(3))

        def forward(self, x):
            self.seen.add_(x)
            return self.other * 2

    module, twin = Counting(), Counting()
    captures = []
    call = compiled(module, captures)
    for step in range(4):
        x = torch.full((3,), float(step))
        if step == 2:
            for m in (module, twin):
                m.other.data = m.seen.data
        assert torch.equal(twin(x), call(x)), step
        assert torch.equal(twin.seen, module.seen), step
    assert len(captures) == 2


def test_nothing_written_nothing_guarded():
    captures = []
    call = compiled(lambda a, b: a + b, captures)
    for kind in KINDS[:-1]:
        a, b = pair(kind)
        assert torch.equal(call(a, b), a + b)
    assert len(captures) == 1


def test_many_inputs_are_not_compared_pairwise():
    """An optimizer's step: as many facts as tensors, not their square."""

    def step(params, grads):
        for p, g in zip(params, grads):
            p.sub_(g)

    params, grads = [torch.ones(2) for _ in range(150)], [torch.ones(2) for _ in range(150)]
    counts = []
    call = cdynamo.compile(step, backend="eager", fullgraph=True)
    with listening(lambda kind, payload: counts.append(payload["guard_count"]) if kind == "capture" else None):
        call(params, grads)
    assert all(torch.equal(p, torch.zeros(2)) for p in params)
    assert counts[0] < 150 * 8


def test_the_miss_is_explained():
    messages = []
    call = cdynamo.compile(writes, backend="aot_eager")
    with listening(lambda kind, payload: messages.extend(payload["failed"]) if kind == "recompile" else None):
        call(*pair("apart"))
        call(*pair("overlapping"))
    assert len(messages) == 1 and "that of L['a'] and L['b'] overlaps" in messages[0], messages
