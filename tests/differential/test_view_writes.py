"""Writes through views of tensors that the function makes: base and views become part of autograd's graph, as in eager."""

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


def with_grad(*shape, seed=0):
    return t(*shape, seed=seed).requires_grad_()


def trained(fn, **more):
    x = with_grad(3)
    return Setup(fn, lambda: (x,), watch=lambda: x.grad, after=lambda out: out[0].sum().backward(), **more)


@scenario()
def slices_of_an_empty_tensor():
    def f(x):
        out = torch.empty(2, 6)
        out[..., :3].copy_(x)
        out[..., 3:].copy_(x * 2)
        return out, out.requires_grad, out.is_leaf

    return trained(f)


@scenario()
def other_views_follow():
    def f(x):
        base = torch.zeros(2, 3)
        rows, column, turned = base.unbind(0), base.select(1, 0), base.view(3, 2).t()
        before = [v.requires_grad for v in (base, *rows, column, turned)]
        rows[0].add_(x)
        return base * 2 + column.sum(), before, [v.requires_grad for v in (base, *rows, column, turned)], base.is_leaf

    return trained(f)


@scenario()
def view_of_a_view():
    def f(x):
        base = torch.zeros(4, 3)
        inner = base[1:3][0]
        inner.mul_(x)
        return base.sin() + inner, base.requires_grad, base[1:3].requires_grad

    return trained(f)


@scenario()
def base_that_is_written_itself():
    def f(x):
        base = torch.zeros(2, 3)
        view = base[0]
        base.add_(x)
        return view * 2, view.requires_grad

    return trained(f)


@scenario()
def after_another_mode():
    def f(x):
        with torch.no_grad():
            scale = x.sum() * 0 + 2
        out = torch.empty(2, 3)
        out[0].copy_(x * scale)
        out[1].copy_(x)
        return out, out.requires_grad

    return trained(f)


@case(lambda: (with_grad(3),), skip="ViewMetadataChange")
def detached_ones_do_not_follow(x):
    base = torch.zeros(2, 3)
    apart = base.detach()
    base[0].add_(x)
    return base * 2, apart.requires_grad, apart


@case(lambda: (with_grad(6),), skip="*")
def maybe_a_copy(x):
    base = torch.zeros(6)
    other = base.reshape(2, 3)
    base[:].add_(x)
    return base * 2, other.requires_grad, other


@case(lambda: (with_grad(3),), skip="*")
def made_without_gradients(x):
    base = torch.zeros(2, 3)
    with torch.no_grad():
        view = base[0]
    try:
        view.add_(x)
    except RuntimeError as error:
        return x * 2, str(error)[:20]
    return base


@scenario(skip="*")
def view_of_an_input():
    x = with_grad(3)

    def f(base):
        base[0].add_(x)
        return base * 2, base.requires_grad

    return Setup(f, lambda: (t(2, 3),))


test_view_writes = cases.as_test(__name__)


def test_view_that_autograd_forbids():
    def run(x, view):
        y = x + 1
        try:
            view * 2
        except RuntimeError as error:
            return y * 2, str(error)[:40]

    def outcome(fn):
        base = t(3)
        with torch.no_grad():
            view = base[:]
        base.add_(t(3, grad=True))
        return fn(t(3), view)

    with cdynamo.config.patch(strict=True):
        (expected, words), (result, said) = outcome(run), outcome(cdynamo.compile(run, backend="eager"))
    assert torch.equal(result, expected) and said == words and "view" in words
