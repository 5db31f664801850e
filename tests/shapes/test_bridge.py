"""The bridge: metadata, tensor guards, global state, the memo, the fallback."""

import operator
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from oracle import Tally, engine, facts, layouts, normal


def test_read_tensor_meta():
    grad = torch.ones(2, requires_grad=True)
    for t in [*layouts((2, 3, 4, 5)), grad, grad * 1, torch.nn.Parameter(torch.ones(1))]:
        assert normal(engine.read_tensor_meta(t)) == facts(t)
    c = torch.ones(2, dtype=torch.complex64)
    assert normal(engine.read_tensor_meta(c.conj())) == facts(c.conj())


def test_odd_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(2)
    assert "__torch_dispatch__" in engine.read_tensor_meta(fake)
    assert "strided" in engine.read_tensor_meta(torch.ones(2, 2).to_sparse())
    assert "uncommon dtype" in engine.read_tensor_meta(torch.ones(2).to(torch.float8_e5m2))
    assert engine.read_tensor_meta(3) == "not a tensor"
    seen = []
    torch.func.vmap(lambda x: seen.append(engine.read_tensor_meta(x)) or x)(torch.ones(2))
    assert "torch.func" in seen[0]


def test_tensor_guard():
    t = torch.rand(2, 3)
    guard = engine.tensor_guard(t)
    assert engine.tensor_guard_check(guard, t) is None
    assert engine.tensor_guard_check(guard, torch.rand(2, 3)) is None

    def reason(other):
        return engine.tensor_guard_check(guard, other)

    assert reason(torch.rand(4, 3)) == "tensor 'L['x']' size mismatch at index 0. expected 2, actual 4"
    assert reason(torch.rand(2, 3, dtype=torch.float64)) == "tensor 'L['x']' dtype mismatch. expected Float, actual Double"
    assert "rank mismatch. expected 2, actual 1" in reason(torch.rand(3))
    assert "stride mismatch at index 0. expected 3, actual 1" in reason(torch.rand(3, 2).t())
    assert "requires_grad mismatch. expected requires_grad=0" in reason(torch.rand(2, 3, requires_grad=True))
    assert "expected type" in reason(torch.nn.Parameter(torch.rand(2, 3)))
    assert "expected type" in reason(5)
    with torch.inference_mode():
        made = torch.rand(2, 3)
    assert "dispatch key set mismatch" in reason(made)
    assert "device mismatch" in reason(torch.rand(2, 3, device="meta"))


def test_global_state():
    state = engine.capture_global_state()
    assert engine.global_state_check(state) is None
    with torch.no_grad():
        assert "grad_mode changed from 1 to 0" in engine.global_state_check(state)
    with torch.inference_mode():
        assert "inference_mode" in engine.global_state_check(state)
    with torch.autocast("cpu"):
        assert "autocast_cpu" in engine.global_state_check(state)
    with torch.device("meta"):
        assert "torch_function modes" in engine.global_state_check(state)
    torch.set_default_dtype(torch.float64)
    try:
        assert "default_dtype" in engine.global_state_check(state)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True)
    try:
        assert "deterministic_algorithms" in engine.global_state_check(state)
    finally:
        torch.use_deterministic_algorithms(False)
    old = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = not old
    try:
        assert "float32_matmul_precision" in engine.global_state_check(state)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = old
    with torch._C.DisableTorchFunction():
        assert "torch_function" in engine.global_state_check(state)
    assert engine.global_state_check(state) is None


def test_guards_are_fast():
    t = torch.rand(2, 3, 4)
    tensor_ns, state_ns = min(engine.time_guards(engine.tensor_guard(t), t, engine.capture_global_state(), 20000) for _ in range(5))
    assert tensor_ns < 100 and state_ns < 400, (tensor_ns, state_ns)


def test_memo_and_fallback():
    engine.clear_infer_memo()
    x, y = torch.rand(2, 3), torch.rand(3, 4)
    args = ("ij,jk->ik", x, y)
    assert engine.infer_result(torch.einsum, args)[0] == "fake"
    path, got = engine.infer_result(torch.einsum, args)
    assert path == "memo" and normal(got) == facts(torch.einsum(*args))
    with torch.no_grad():
        assert engine.infer_result(torch.einsum, args)[0] == "fake"
    assert engine.infer_result(torch.einsum, ("ij,jk->ki", x, y))[0] == "fake"
    # The same tensor twice is not two equal tensors.
    z = torch.rand(2, 2)
    assert engine.infer_result(torch.einsum, ("ij,jk->ik", z, z))[0] == "fake"
    assert engine.infer_result(torch.einsum, ("ij,jk->ik", z, torch.rand(2, 2)))[0] == "fake"


def test_errors_are_eager_errors():
    with pytest.raises(RuntimeError, match=r"size of tensor|shape mismatch|broadcast"):
        engine.infer_result(torch.add, (torch.ones(2), torch.ones(3)))
    with pytest.raises(IndexError):
        engine.infer_result(torch.sum, (torch.ones(2), 5))
    with pytest.raises(TypeError):
        engine.infer_result(torch.sum, (torch.ones(2),), {"nonsense": 1})
    with pytest.raises(RuntimeError, match="leaf Variable"):
        engine.infer_result("add_", (torch.ones(2, requires_grad=True), 1))


@pytest.mark.parametrize(
    "target, args",
    [
        (torch.nonzero, (torch.ones(3),)),
        ("item", (torch.ones(()),)),
        (torch.unique, (torch.ones(3),)),
        (torch.masked_select, (torch.ones(3), torch.ones(3, dtype=torch.bool))),
    ],
)
def test_data_dependent(target, args):
    with pytest.raises(NotImplementedError):
        engine.infer_result(target, args)


def test_autocast():
    x, w = torch.rand(2, 3), torch.rand(4, 3)
    for target, args in [(F.linear, (x, w)), (torch.matmul, (x, w.t())), (torch.add, (x, x)), ("view", (x, -1)), (F.softmax, (x, -1))]:
        with torch.autocast("cpu", torch.bfloat16):
            _, got = engine.infer_result(target, args)
            eager = getattr(args[0], target)(*args[1:]) if isinstance(target, str) else target(*args)
        assert normal(got) == facts(eager), target
    assert engine.infer_result(F.linear, (x, w))[1]["dtype"] is torch.float32


def test_inference_mode():
    x = torch.rand(2, 3)
    with torch.inference_mode():
        for t in (x, torch.rand(2, 3)):
            for target, args in [("add", (1,)), ("view", (-1,)), ("contiguous", ()), ("t", ()), ("double", ()), ("unbind", ()), ("new_zeros", (2,))]:
                path, got = engine.infer_result(target, (t, *args))
                assert path == "rule" and normal(got) == normal(getattr(t, target)(*args)), target
        made = torch.rand(2, 3)
        assert normal(engine.infer_result("add_", (made, 1))[1]) == facts(made.add_(1))
    path, got = engine.infer_result(torch.add, (made, 1))
    assert path == "fake" and normal(got) == facts(made + 1)


def test_default_device_is_respected():
    with torch.device("meta"):
        path, _ = engine.infer_result(torch.zeros, (2,))
    assert path == "fake"


def test_attributes_and_aten_names():
    x = torch.rand(2, 3)
    tally = Tally()
    tally.check(getattr, x, "T")
    tally.check(torch.ops.aten.add.Tensor, x, x)
    tally.check(torch.ops.aten.mm, x, x.t())
    tally.check(torch.ops.aten.view.default, x, [3, 2])
    tally.check(torch.ops.aten.sum.dim_IntList, x, [1], True)
    tally.check(torch.Tensor.add, x, 1)
    tally.check(torch.Tensor.view, x, -1)
    assert not tally.wrong, tally.report()
    assert tally.paths["rule"] == 7, tally.not_rule


def test_self_after():
    grad = torch.ones(2, requires_grad=True)
    plain = torch.ones(2)
    assert engine.self_after(torch.add, (plain, 1)) is None
    after = engine.self_after("mul_", (plain, grad))
    assert after["requires_grad"] and not after["is_leaf"]
    after = engine.self_after(operator.setitem, (plain, 0, grad[0]))
    assert after["requires_grad"] and not after["is_leaf"]
    assert engine.self_after(operator.setitem, (plain, 0, 1))["requires_grad"] is False
    assert engine.self_after("requires_grad_", (plain,))["requires_grad"]
    after = engine.self_after(F.relu, (plain,), {"inplace": True})
    assert after["is_leaf"]


def test_rules_import_nothing():
    code = """
import sys, torch
from oracle import engine
import torch.nn.functional as F, operator
x = torch.rand(2, 3, requires_grad=True)
calls = [(torch.add, (x, 1)), (F.linear, (x, torch.rand(4, 3))), ("view", (x, -1)), (operator.getitem, (x, 0)), (torch.zeros, (2,))]
for target, args in [*calls, (torch.max, (x, 0))]:
    path, _ = engine.infer_result(target, args)
    assert path == "rule", target
loaded = [m for m in sys.modules if m == "sympy" or m.startswith("torch._dynamo") or m == "cdynamo._fake"]
assert not loaded, loaded
"""
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.abspath(__file__)))
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
