"""compile(): everything it takes, everything it refuses, and compiled modules. Behaviour is torch.compile's."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import textwrap
import weakref

import pytest
import torch

import cdynamo

x = torch.ones(3)


def compiled(model=None, **arguments):
    return cdynamo.compile(model, backend="eager", **arguments)


def add_one(x):
    """Adds one."""
    return x + 1


class Thing:
    def method(self, x):
        return x + 2

    @staticmethod
    def static(x):
        return x + 3

    @classmethod
    def of_class(cls, x):
        return x + 4

    def __call__(self, x):
        return x + 5


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.lin(x) * self.scale

    def other(self, x):
        return x * 7


@pytest.mark.parametrize(
    ("model", "plus"),
    [
        (add_one, 1),
        (lambda x: x + 1, 1),
        (Thing().method, 2),
        (Thing.static, 3),
        (Thing.__dict__["static"], 3),
        (Thing.of_class, 4),
        (Thing(), 5),
        (functools.partial(torch.add, torch.ones(3)), 1),
        (functools.partial(Thing().method), 2),
    ],
)
def test_callables(model, plus):
    assert torch.equal(compiled(model)(x), x + plus)


def test_builtins_and_torch_functions():
    assert compiled(len)(x) == 3
    assert torch.equal(compiled(torch.sin)(x), torch.sin(x))
    assert torch.equal(compiled(torch.nn.functional.relu)(x), x)


def test_decorators():
    @cdynamo.compile
    def bare(x):
        return x + 1

    assert bare.__name__ == "bare"

    @cdynamo.compile(backend="eager", fullgraph=True)
    def with_arguments(x, y=2):
        return x + y

    assert torch.equal(with_arguments(x), x + 2) and torch.equal(with_arguments(x, y=3), x + 3)

    class Holder:
        @compiled
        def method(self, x):
            return x + 1

        @staticmethod
        @compiled
        def static(x):
            return x + 2

        @classmethod
        @compiled
        def of_class(cls, x):
            return x + 3, cls

    assert torch.equal(Holder().method(x), x + 1) and torch.equal(Holder.static(x), x + 2)
    assert torch.equal(Holder().static(x), x + 2) and Holder.of_class(x)[1] is Holder


def test_looks_like_the_function():
    f = compiled(add_one)
    assert (f.__name__, f.__doc__, f.__wrapped__, f.__module__) == ("add_one", "Adds one.", add_one, __name__)
    assert str(inspect.signature(f)) == "(x)"
    assert f._torchdynamo_orig_callable is add_one


def test_generators_and_coroutines():
    def numbers(x):
        yield x
        yield x + 1

    async def later(x):
        return x + 1

    assert len(list(compiled(numbers)(x))) == 2
    coroutine = compiled(later)(x)
    with pytest.raises(StopIteration) as info:
        coroutine.send(None)
    assert torch.equal(info.value.value, x + 1)


def test_classes():
    class Callable:
        def __call__(self, x):
            return x + 1

    assert compiled(Callable) is Callable
    assert torch.equal(Callable()(x), x + 1)

    class Net(torch.nn.Module):
        def forward(self, x):
            return x + 2

    assert compiled(Net) is Net
    assert torch.equal(Net()(x), x + 2)
    with pytest.raises(TypeError, match="cannot set '__call__' attribute of immutable type 'list'"):
        compiled(list)


def test_already_compiled():
    once = compiled(add_one)
    twice = compiled(once)
    assert twice is not once and twice._torchdynamo_orig_callable is add_one
    assert torch.equal(twice(x), x + 1)
    module = Block()
    assert compiled(compiled(module))._orig_mod is module
    assert torch.equal(compiled(torch.compile(add_one, backend="eager"))(x), x + 1)
    assert torch.equal(compiled(lambda x: once(x) * 2)(x), (x + 1) * 2)


class Counted:
    """A backend that counts its graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, module, inputs):
        self.graphs += 1
        return module


def test_captures_are_shared_by_what_is_compiled_alike():
    backend = Counted()
    for _ in range(3):  # also where nothing holds what compile() gave
        assert torch.equal(cdynamo.compile(add_one, backend=backend)(x), x + 1)
    assert backend.graphs == 1
    cdynamo.compile(add_one, backend=backend, fullgraph=True)(x)
    assert backend.graphs == 2, "other options are another capture"
    blocks = [torch.nn.Linear(3, 3) for _ in range(12)]
    backend = Counted()
    compiled_blocks = [cdynamo.compile(block, backend=backend) for block in blocks]
    for block, compiled_block in zip(blocks, compiled_blocks):
        assert torch.equal(compiled_block(x), block(x))
    assert backend.graphs == 1, "modules that differ in nothing but their parameters"


def test_captures_of_what_was_dropped_go_in_the_end():
    def dropped():
        backend = Counted()
        compile_now = cdynamo.compile(lambda x: x * 3, backend=backend)
        compile_now(x)
        return weakref.ref(backend)

    first = dropped()
    for _ in range(20):
        dropped()
    gc.collect()
    assert first() is None
    last = dropped()
    cdynamo.reset()
    gc.collect()
    assert last() is None


def test_compile_inside():
    def outer(x):
        def inner(x):
            return x.sin()

        return cdynamo.compile(inner, backend="eager")(x) + cdynamo.compile(add_one)(x)

    backend = Counted()
    assert torch.equal(cdynamo.compile(outer, backend=backend, fullgraph=True)(x), x.sin() + x + 1)
    assert backend.graphs == 1


def test_refusals():
    for wrong in (3, "abc", Thing.__dict__["of_class"]):
        with pytest.raises(AssertionError, match=r"A callable function is expected, but <class '.*'> is provided."):
            compiled(wrong)
    with pytest.raises(RuntimeError, match="Model can't be None"):
        compiled()(None)
    with pytest.raises(RuntimeError, match="Either mode or options can be specified"):
        cdynamo.compile(add_one, mode="default", options={"a": 1})
    with pytest.raises(AssertionError, match="Expected dynamic to be a bool or None, got <class 'str'>"):
        cdynamo.compile(add_one, dynamic="yes")
    with pytest.raises(RuntimeError, match="Unrecognized mode=nope, should be one of: default"):
        cdynamo.compile(add_one, mode="nope")
    with pytest.raises(RuntimeError, match="Unexpected optimization option nope"):
        cdynamo.compile(add_one, options={"nope": 1})
    with pytest.raises(TypeError):
        cdynamo.compile(add_one, True)
    from torch._dynamo.exc import InvalidBackend

    with pytest.raises(InvalidBackend, match="aot_eager"):
        cdynamo.compile(add_one, backend="nope")


def test_disable_argument():
    assert cdynamo.compile(add_one, disable=True) is add_one
    module = Block()
    assert cdynamo.compile(module, disable=True) is module


def test_module_is_the_module():
    module = Block()
    c = compiled(module)
    assert isinstance(c, torch.nn.Module) and isinstance(c, cdynamo.CompiledModule)
    assert torch.equal(c(x), module(x)) and torch.equal(c.forward(x), module(x)) and torch.equal(c.other(x), x * 7)
    assert list(c.state_dict()) == ["_orig_mod.scale", "_orig_mod.lin.weight", "_orig_mod.lin.bias"]
    assert [name for name, _ in c.named_parameters()] == ["_orig_mod.lin.weight", "_orig_mod.lin.bias"]
    assert [name for name, _ in c.named_children()] == ["_orig_mod"]
    assert c.lin is module.lin and c._orig_mod is module and c.scale is module.scale
    assert c.load_state_dict(c.state_dict()).missing_keys == []
    assert "lin" in dir(c) and "(_orig_mod): Block(" in repr(c)


def test_module_mode_and_attributes():
    module = Block()
    c = compiled(module)
    c.eval()
    assert not module.training and not c.training and not module.lin.training
    c.train()
    assert module.training
    module.training = False
    assert not c.training
    c.note = 3
    assert module.note == 3 and "note" not in c.__dict__
    del c.note
    assert not hasattr(module, "note") and not hasattr(c, "note")
    c.lin = torch.nn.Linear(3, 3, bias=False)
    assert module.lin.bias is None
    assert c.double() is c and module.lin.weight.dtype is torch.float64
    with pytest.raises(AttributeError):
        c.nothing  # noqa: B018
    assert len(compiled(torch.nn.Sequential(module, module))) == 2
    with pytest.raises(TypeError, match="does not support len"):
        len(c)


def test_module_hooks():
    module = Block()
    c = compiled(module)
    calls = []
    outer = c.register_forward_hook(lambda *_: calls.append("wrapper"))
    inner = module.register_forward_hook(lambda *_: calls.append("original"))
    deep = module.lin.register_forward_pre_hook(lambda *_: calls.append("part"))
    c(x)
    assert calls == ["part", "original", "wrapper"]
    for hook in (outer, inner, deep):
        hook.remove()
    c(x)
    assert len(calls) == 3
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        with pytest.warns(UserWarning, match="global hooks"):
            c(x)
    finally:
        handle.remove()


def test_module_copies():
    c = compiled(Block())
    for copied in (copy.deepcopy(c), pickle.loads(pickle.dumps(c))):
        assert type(copied) is cdynamo.CompiledModule and copied._orig_mod is not c._orig_mod
        assert torch.equal(copied(x), c(x))
    assert copy.copy(c)._orig_mod is c._orig_mod
    assert torch.equal(copy.deepcopy(cdynamo.compile(Block(), backend="inductor")).scale, torch.tensor(2.0))


def test_lazy_modules():
    module = torch.nn.LazyLinear(2)
    c = compiled(module)
    assert c(x).shape == (2,) and module.weight.shape == (2, 3)
    assert torch.equal(c(x), module(x))
    module = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.LazyLinear(2))
    c = compiled(module, fullgraph=True)
    assert c(x).shape == (2,) and type(module[1]) is torch.nn.Linear and module[1].weight.shape == (2, 4)


def test_module_gradients():
    module = Block()
    compiled(module)(x).sum().backward()
    got = [p.grad.clone() for p in module.parameters()]
    module.zero_grad()
    module(x).sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(got, module.parameters()))


def test_disable():
    @cdynamo.disable
    def one(x):
        return x + 1

    @cdynamo.disable(recursive=False, reason="because")
    def two(x):
        return x + 2

    assert torch.equal(one(x), x + 1) and torch.equal(two(x), x + 2)
    assert one._torchdynamo_disable and two._torchdynamo_disable_msg == "because" and not two._torchdynamo_disable_recursive
    assert torch.equal(compiled(lambda x: one(x) * two(x))(x), (x + 1) * (x + 2))
    module = Block()
    disabled = cdynamo.disable(module)
    assert torch.equal(disabled(x), module(x)) and disabled.lin is module.lin
    assert cdynamo.disable(compiled(add_one))._torchdynamo_orig_callable is add_one
    with pytest.raises(AssertionError, match="A callable function is expected"):
        cdynamo.disable(3)


def test_is_compiling():
    assert cdynamo.is_compiling() is False


def test_import_is_light():
    script = """
        import sys
        sys.path.insert(0, "tests/front")
        import stand_in
        import cdynamo, torch
        f = cdynamo.compile(lambda x: x + 1, backend="eager")
        f(torch.ones(2))
        f = cdynamo.compile(torch.nn.Linear(2, 2), backend=lambda gm, inputs: gm.forward)
        f(torch.ones(2))
        cdynamo.install()
        cdynamo.uninstall()
        print(sorted({"torch._dynamo", "sympy", "torch._inductor"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_other_versions_are_refused():
    from cdynamo import _requirements

    with pytest.raises(ImportError, match=r"built for torch 2\.0\.0, but torch 2\.1\.0 is installed; build it again\."):
        _requirements.check_torch(("3.11", "2.0.0"), "2.1.0")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ImportError, match=r"supports CPython 3\.11 and 3\.12, but this is"):
        patch.setattr(_requirements, "SUPPORTED", ((3, 11), (3, 12)))
        patch.setattr(sys, "version_info", (3, 10, 0))
        _requirements.check_python()
