"""torch.optim inside compiled functions: the step is one graph, its state is found under the parameters themselves."""

import gc
import weakref

import pytest
import torch

import cdynamo

OPTIMIZERS = {
    "SGD": dict(momentum=0.9, nesterov=True),
    "Adam": dict(amsgrad=True),
    "AdamW": dict(),
    "AdamW_foreach": dict(foreach=True),
    "RMSprop": dict(centered=True),
    "Adagrad": dict(),
    "Adadelta": dict(),
    "NAdam": dict(),
    "Adamax": dict(),
}


def world(name, options):
    params = [torch.nn.Parameter(torch.full((3,), 1.0 + i)) for i in range(3)]
    return params, getattr(torch.optim, name.partition("_")[0])(params, lr=0.1, **options)


def set_grads(params, k):
    for i, p in enumerate(params):
        p.grad = torch.full((3,), 0.5 * (i + 1) + k)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step_is_one_graph(name):
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    (ours, optimizer), (theirs, plain) = world(name, OPTIMIZERS[name]), world(name, OPTIMIZERS[name])
    compiled = cdynamo.compile(lambda: optimizer.step(), backend=backend)
    per_call = []
    for k in range(4):
        set_grads(ours, k), set_grads(theirs, k)
        before = len(graphs)
        compiled(), plain.step()
        per_call.append(len(graphs) - before)
        # The optimizer itself takes another way while compiling: equal but for rounding.
        torch.testing.assert_close(ours, theirs)
    assert per_call[0] == 1 and per_call[1] <= 1 and per_call[2:] == [0, 0]
    state, expected = optimizer.state_dict()["state"], plain.state_dict()["state"]
    torch.testing.assert_close(state, expected)


def test_other_parameters_are_not_mistaken():
    """A new state, a parameter that left: found by guards, never another's state."""
    params, optimizer = world("SGD", dict(momentum=0.9))
    theirs, plain = world("SGD", dict(momentum=0.9))
    compiled = cdynamo.compile(lambda: optimizer.step(), backend="eager")
    for k in range(5):
        set_grads(params, k), set_grads(theirs, k)
        if k == 2:
            params[1].grad = theirs[1].grad = None
        if k == 3:
            optimizer.state.clear(), plain.state.clear()
        if k == 4:
            swapped = optimizer.param_groups[0]["params"], plain.param_groups[0]["params"]
            for group in swapped:
                group[0], group[2] = group[2], group[0]
        compiled(), plain.step()
        torch.testing.assert_close(params, theirs)


def test_parameters_die():
    params, optimizer = world("AdamW", {})
    set_grads(params, 0)
    compiled = cdynamo.compile(lambda o: o.step(), backend="eager")
    compiled(optimizer), compiled(optimizer)
    refs = [weakref.ref(p) for p in params]
    del params, optimizer
    gc.collect()
    assert not any(r() for r in refs)


def test_scalar_tensors_as_numbers():
    x, y, z, s = torch.ones(3), torch.full((3,), 2.0), torch.full((3,), 4.0), torch.tensor(0.3)

    def f(x):
        a = x.clone()
        a.addcmul_(y, z, value=s)
        a.addcdiv_(y, z, value=s)
        return a, torch.addcmul(x, y, z, value=s), x.addcdiv(y, z, value=s), torch.addcmul(x, y, z, value=2), torch._foreach_pow(s, [y, z])

    for backend in ("eager", "aot_eager"):
        torch.testing.assert_close(cdynamo.compile(f, backend=backend, fullgraph=True)(x), f(x))


@pytest.mark.parametrize("function", [torch._foreach_addcdiv_, torch._foreach_addcmul_])
def test_lists_with_a_tensor_of_numbers(function):
    def f(a, b, c, s):
        function(a, b, c, s)
        return [v * 2 for v in a]

    def world():
        return (
            [torch.ones(2), torch.ones(3)],
            [torch.full((2,), 2.0), torch.full((3,), 3.0)],
            [torch.full((2,), 4.0), torch.ones(3)],
            torch.tensor([0.5, 2.0]),
        )

    for backend in ("eager", "aot_eager"):
        torch.testing.assert_close(cdynamo.compile(f, backend=backend, fullgraph=True)(*world()), f(*world()))


def test_step_with_a_backend_that_traces_again():
    (ours, optimizer), (theirs, plain) = world("AdamW", dict(foreach=True)), world("AdamW", dict(foreach=True))
    compiled = cdynamo.compile(lambda: optimizer.step(), backend="aot_eager")
    for k in range(3):
        set_grads(ours, k), set_grads(theirs, k)
        compiled(), plain.step()
    torch.testing.assert_close(ours, theirs)
