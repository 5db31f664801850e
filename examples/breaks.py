"""A break in a loop: the second example of the README."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch

import cdynamo


def relax(x, steps):
    for _ in range(steps):
        x = torch.tanh(x) * 2
        if x.abs().max() > 1.5:
            x = x / 2
        x = x - x.mean()
    print("the result is", x)
    return x.relu()


print(cdynamo.explain(relax)(torch.tensor([1.0, 2.0, 3.0]), 100))
