"""The first example of the README."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch

import cdynamo


@cdynamo.compile
def f(x, y):
    return torch.sin(x) + y


print(f(torch.ones(2), torch.ones(2)))
print(cdynamo.explain(f)(torch.ones(2), torch.ones(2)))
