"""The first operations of `tests/fuzz/operations.py`."""

import operations
import pytest


@pytest.mark.parametrize("seed", [0, 6, 7])
def test_random_operations(seed):
    told = [f"{operation.text}\n--> {said}" for operation in operations.operations(seed, 700) if (said := operation.difference())]
    assert not told, "\n".join(told)
