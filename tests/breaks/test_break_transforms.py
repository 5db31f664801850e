"""torch.func transforms that are not captured run as a whole: nothing goes on in the middle of one."""

import pytest
import torch
from harness import t

import cdynamo


def squares(r):
    return (r * r.sin()).sum()


PROGRAMS = {
    "grad": lambda x: torch.func.grad(squares)(x),
    "grad_of_scaled": lambda x: torch.func.grad(lambda r: (r * 3).sum())(x),
    "grad_and_value": lambda x: torch.func.grad_and_value(squares)(x * 2),
    "jacrev": lambda x: torch.func.jacrev(lambda r: r.sin() * r.sum())(x),
    "jvp": lambda x: torch.func.jvp(lambda r: r.sin(), (x,), (x,)),
    "hessian": lambda x: torch.func.hessian(squares)(x),
    "vmap_of_grad": lambda x: torch.func.vmap(torch.func.grad(squares))(x.reshape(2, 2)) + 1,
    "functionalize": lambda x: torch.func.functionalize(lambda r: r.clone().add_(1))(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_transform(name):
    program = PROGRAMS[name]
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        compiled = cdynamo.compile(program, backend="eager")
        for _ in range(3):
            torch.testing.assert_close(compiled(t(4)), program(t(4)), rtol=0, atol=0)
