"""Branches on random numbers: decided by their range where that is enough, a break where it is not."""

from __future__ import annotations

import torch
from differ import Cases, t

cases = Cases()
case = cases.case


class Layers(torch.nn.Module):
    """Layer dropout as transformers write it."""

    def __init__(self, layerdrop: float) -> None:
        super().__init__()
        self.layerdrop = layerdrop
        self.layers = torch.nn.ModuleList(torch.nn.Identity() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            if self.training:
                dropped = torch.rand([])
                if dropped < self.layerdrop:
                    continue
            x = layer(x) + i
        return x


@case(lambda: (Layers(0.0), t(3)), ops=["rand", "lt", "add", "rand", "lt", "add", "rand", "lt", "add"])
def layerdrop_off(model, x):
    return model(x)


@case(lambda: (Layers(0.5), t(3)), graphs=3, skip="*", captures=(3, 0))
def layerdrop_on(model, x):
    return model(x)


@case(lambda: (t(3),))
def never_below_zero(x):
    if torch.rand(1) < 0:
        x = x - 1
    if torch.rand(()) >= 0.0:
        x = x * 2
    return x


@case(lambda: (t(3),))
def never_above_one(x):
    if torch.rand([]) > 1.0:
        x = x - 1
    return x if torch.rand_like(x[0]) <= 1 else x + 5


@case(lambda: (t(3),))
def number_first(x):
    if 0 > torch.rand([]):
        x = x - 1
    return x + 1


@case(lambda: (t(3),))
def method_and_function(x):
    if torch.rand([]).lt(-0.5):
        x = x - 1
    if torch.ge(torch.rand([]), 0):
        x = x * 3
    return x


@case(lambda: (t(3),))
def in_a_while(x):
    while not torch.rand([]) >= 0:
        x = x - 1
    return x + 1


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def changed_in_place_before(x):
    r = torch.rand([])
    r.sub_(2)
    return x - 1 if r < 0 else x + 1


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def changed_through_a_view(x):
    r = torch.rand(1)
    r[0] = -1.0
    return x - 1 if r < 0 else x + 1


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def condition_changed_in_place(x):
    c = torch.rand([]) < 0
    c.logical_not_()
    return x - 1 if c else x + 1


@case(lambda: (t(3), torch.empty([])), graphs=2, skip="*", captures=(2, 0))
def made_in_a_callers_tensor(x, out):
    r = torch.rand([], out=out)
    out.fill_(-3.0)
    return x - 1 if r < 0 else x + 1


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def within_the_range(x):
    return x - 1 if torch.rand([]) < 0.5 else x + 1


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def not_a_number(x):
    return x - 1 if torch.rand([]) < float("nan") else x + 1


@case(lambda: (t(3),), graphs=1, skip="*", captures=(1, 0))
def of_several_elements(x):
    return x - 1 if torch.rand(2) < 0 else x + 1


test_ranges = cases.as_test(__name__)
