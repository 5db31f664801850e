"""Modules: hooks that are always called, hooks that go while they run, cached properties."""

from differ import Cases, Setup, outcome, t
from torch import nn

cases = Cases()
case, scenario = cases.case, cases.scenario


class Failing(nn.Module):
    def forward(self, x, fail=True):
        if fail:
            raise ValueError("boom")
        return x + 1


@scenario()
def hook_that_is_always_called():
    m, log = Failing(), []
    m.register_forward_hook(lambda mod, args, out: log.append(("always", out is None)), always_call=True)
    m.register_forward_hook(lambda mod, args, kwargs, out: log.append(("keywords", kwargs)), always_call=True, with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: log.append(("plain", out is None)))
    return Setup(lambda x: (m(x, False), outcome(lambda: m(x, fail=True))), lambda: (t(3),), watch=lambda: list(log))


@scenario(skip="Output")
def hook_that_is_always_called_fails():
    m, log = Failing(), []

    def bad(mod, args, out):
        log.append(out)
        raise KeyError("hook")

    m.register_forward_hook(bad, always_call=True)
    m.register_forward_hook(lambda mod, args, out: log.append("two"), always_call=True)
    return Setup(lambda x: (x + 1, outcome(lambda: m(x))), lambda: (t(3),), watch=lambda: list(log))


test_wild8_modules = cases.as_test(__name__)
