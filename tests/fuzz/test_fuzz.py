"""The first hundred programs of `make fuzz`."""

import fuzz
import pytest

# Batch 1 finds a program that fails with a break at every 14th instruction: a tensor error in a generator that goes on after a break ends in
# an internal error.
GENERATOR = pytest.mark.xfail(reason="a tensor error in a generator that goes on after a break is an internal error", strict=True)


@pytest.mark.parametrize("batch", [0, pytest.param(1, marks=GENERATOR)])
def test_random_programs(batch):
    result = fuzz.run_batch(batch, 50)
    assert result.failed is None, f"{'a crash' if result.crashed else 'wrong'}:\n{result.failed}\n{result.error}"
    assert result.stats["programs"] >= 50 and result.stats["graphs"] > 25
