"""ns per check of an unchanged 100-block module: python tests/guards/bench_module.py [blocks]."""

import sys

import torch
from conftest import extension as C

HOOKS = [
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_pre_hooks_with_kwargs",
]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for name in ("q", "k", "v", "o", "up", "down"):
            setattr(self, name, torch.nn.Linear(8, 8, bias=False))
        self.norm1, self.norm2, self.act = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8), torch.nn.GELU()
        self.w, self.u = torch.nn.Parameter(torch.zeros(8)), torch.nn.Parameter(torch.zeros(8))


def facts_of(module, source, facts, wanted):
    fields = ("dict", source)
    facts.append(("type", source, type(module)))
    facts.append(("equals", ("item", fields, "training"), module.training))
    for hook in HOOKS:
        facts.append(("type", ("item", fields, hook), type(getattr(module, hook))))
        facts.append(("len", ("item", fields, hook), 0))
    facts.append(("lacks", fields, "forward"))
    parameters = ("item", fields, "_parameters")
    for name, p in module._parameters.items():
        if p is not None:
            facts.append(("tensor", ("item", parameters, name), p))
            wanted.append(("item", parameters, name))
    for name, child in module._modules.items():
        facts_of(child, ("item", ("item", fields, "_modules"), name), facts, wanted)
    facts.append(("lookup", type(module), "forward", type(module).forward))


def main():
    blocks = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    model = torch.nn.Sequential(*[Block() for _ in range(blocks)])
    for p in model.parameters():
        p.grad = None
    facts, wanted = [("tensor", ("local", 1), torch.zeros(2, 8))], []
    facts_of(model, ("local", 0), facts, wanted)
    x = torch.zeros(2, 8)
    g = C._TestGuards(facts, tuple(wanted), ("self", "x"))
    assert g.check((model, x)) is not None, g.explain((model, x))
    repeat = 200000 // max(blocks, 1)
    best = min(g.time((model, x), None, repeat) for _ in range(7))
    modules = sum(1 for _ in model.modules())
    print(f"{modules} modules, {len(wanted)} parameters, {len(g)} facts: {best:.0f} ns per check")


main()
