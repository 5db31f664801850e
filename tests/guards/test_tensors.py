"""Tensor facts and the global state."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")
L0 = ("local", 0)


@pytest.fixture
def guards(C):
    return lambda *facts, wanted=(): C._TestGuards(list(facts), wanted, ("x",))


def test_tensor(guards):
    x = torch.randn(3, 4)
    g = guards(("tensor", L0, x))
    assert g.check((x,)) == ()
    assert g.check((torch.zeros(3, 4),)) == ()
    y = torch.randn(4, 4)
    assert g.check((y,)) is None
    assert g.explain((y,)) == "tensor 'L['x']' size mismatch at index 0. expected 3, actual 4"
    for other, word in [
        (torch.randn(4, 3).t(), "stride mismatch"),
        (x.double(), "dtype mismatch"),
        (x.clone().requires_grad_(), "requires_grad mismatch"),
        (torch.randn(3), "rank mismatch"),
        (torch.nn.Parameter(x), "expected type"),
        (3, "expected type"),
        (None, "expected type"),
    ]:
        assert g.check((other,)) is None
        assert word in g.explain((other,))
    with torch.inference_mode():
        z = torch.zeros(3, 4)
    assert g.check((z,)) is None
    assert "dispatch key" in g.explain((z,))


def test_first_tensor_must_match_as_well(guards):
    x = torch.randn(3, 4)
    g = guards(("tensor", L0, x))
    for other in (torch.randn(3, 5), x.double(), x.to(torch.complex64).conj(), x.to_sparse(), torch.nn.Parameter(x)):
        assert g.check((other,)) is None
        assert g.explain((other,))
    assert g.check((x,)) == ()


def test_dynamic_size(guards):
    x = torch.randn(3, 4)
    g = guards(("tensor", L0, x, 0))
    assert g.check((x,)) == ()
    assert g.check((torch.randn(7, 4),)) == ()
    assert g.check((torch.randn(7, 5),)) is None


def test_in_place_changes(guards):
    m = torch.nn.Linear(3, 4)
    source = ("item", ("item", ("dict", L0), "_parameters"), "weight")
    g = guards(("type", L0, torch.nn.Linear), ("tensor", source, m.weight), wanted=(source,))
    assert g.check((m,))[0] is m.weight
    m.weight.requires_grad_(False)
    assert g.check((m,)) is None
    m.weight.requires_grad_(True)
    assert g.check((m,))[0] is m.weight
    m.double()
    assert g.check((m,)) is None
    m.float()
    assert g.check((m,))[0] is m.weight
    m.weight = torch.nn.Parameter(torch.zeros(4, 3))
    assert g.check((m,))[0] is m.weight
    m.weight = None
    assert g.check((m,)) is None


def test_global_state(guards):
    g = guards(("type", L0, int))
    assert g.check((1,)) == ()
    with torch.no_grad():
        assert g.check((1,)) is None
        assert "grad_mode" in g.explain((1,))
    assert g.check((1,)) == ()


def test_constants_of_torch(guards):
    for constant, same, different in [
        (torch.float32, torch.float, torch.float64),
        (torch.device("cpu"), torch.device("cpu"), torch.device("cuda:1")),
        (torch.Size([1, 2]), torch.Size([1, 2]), torch.Size([1, 3])),
        (torch.strided, torch.strided, torch.sparse_coo),
    ]:
        g = guards(("equals", L0, constant))
        assert g.check((same,)) == ()
        assert g.check((different,)) is None


def test_modules_and_tensors_die(guards):
    m = torch.nn.Sequential(torch.nn.Linear(3, 3))
    w = m[0].weight
    refs = [weakref.ref(m), weakref.ref(m[0]), weakref.ref(w)]
    modules = ("item", ("dict", L0), "_modules")
    lin = ("item", modules, "0")
    g = guards(
        ("is", L0, m),
        ("is", lin, m[0]),
        ("is", ("item", ("item", ("dict", lin), "_parameters"), "weight"), w),
        ("tensor", ("item", ("item", ("dict", lin), "_parameters"), "weight"), w),
    )
    assert g.check((m,)) == ()
    del m, w
    gc.collect()
    assert [r() for r in refs] == [None] * 3
    assert g.check((torch.nn.Sequential(torch.nn.Linear(3, 3)),)) is None
