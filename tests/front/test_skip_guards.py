"""set_stance(skip_guard_eval_unsafe=True): only the guards that tell captures apart are run."""

import pytest
import torch

import cdynamo


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    yield
    cdynamo.reset()


def skipping():
    return cdynamo.set_stance(skip_guard_eval_unsafe=True)


def test_one_capture_serves_all_calls():
    def f(x, n):
        return x + n

    compiled = cdynamo.compile(f, backend="eager", dynamic=False)
    assert compiled(torch.ones(2), 1).tolist() == [2, 2]
    with skipping():
        assert compiled(torch.ones(2), 5).tolist() == [2, 2]
        assert compiled(torch.ones(3, dtype=torch.float64), 5).tolist() == [2, 2, 2]
    assert compiled(torch.ones(2), 5).tolist() == [6, 6]


def test_what_tells_captures_apart_is_checked():
    def f(x, flag, other):
        return x + 1 if flag else x - 1

    compiled = cdynamo.compile(f, backend="eager")
    for flag in (True, False):
        compiled(torch.ones(2), flag, 3)
    with skipping():
        for flag in (True, False, True):
            for other in (3, "another"):
                assert compiled(torch.ones(2), flag, other).tolist() == ([2, 2] if flag else [0, 0])
                assert compiled(torch.ones(4), flag, other).tolist() == ([2] * 4 if flag else [0] * 4)


def test_tensors_and_dicts_that_tell_captures_apart():
    def f(x, table):
        return x * x.shape[0] + len(table) + sum(table.values())

    compiled = cdynamo.compile(f, backend="eager", dynamic=False)
    calls = [(torch.ones(2), {}), (torch.ones(3), {}), (torch.ones(2), {"a": 1}), (torch.ones(3), {"a": 1})]
    expected = [compiled(*call) for call in calls]
    with skipping():
        for _ in range(2):
            for call, value in zip(calls, expected):
                assert torch.equal(compiled(*call), value)


def test_a_call_that_is_known_not_to_fit():
    def f(x):
        return x * x.shape[0]

    compiled = cdynamo.compile(f, backend="eager", dynamic=False)
    for size in (2, 3):
        compiled(torch.ones(size))
    with skipping():
        assert compiled(torch.ones(3)).tolist() == [3] * 3
        with pytest.raises(RuntimeError, match="Recompilation triggered with skip_guard_eval_unsafe stance"):
            compiled(torch.ones(4))
    assert compiled(torch.ones(4)).tolist() == [4] * 4


def test_an_attribute_that_tells_captures_apart():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.layer(x) * self.scale

    model = Model()
    compiled = cdynamo.compile(model, backend="eager", dynamic=False)
    x = torch.ones(2)
    values = {}
    for scale in (2, 3):
        model.scale = scale
        values[scale] = compiled(x)
    with skipping():
        for scale in (3, 2, 3):
            model.scale = scale
            assert torch.equal(compiled(x), values[scale])
        model.layer.bias.data.zero_()
        assert torch.equal(compiled(x), model(x))


def test_types_are_always_checked():
    def f(items):
        return items[0] + 1

    compiled = cdynamo.compile(f, backend="eager")
    assert compiled([torch.ones(2)]).tolist() == [2, 2]
    with skipping():
        assert compiled([torch.ones(3)]).tolist() == [2, 2, 2]
        with pytest.raises(RuntimeError, match="Recompilation triggered"):
            compiled({0: torch.ones(2)})
