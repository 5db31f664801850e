"""The first hundred programs of `make fuzz`."""

import fuzz
import pytest


@pytest.mark.parametrize("batch", range(2))
def test_random_programs(batch):
    result = fuzz.run_batch(batch, 50)
    assert result.failed is None, f"{'a crash' if result.crashed else 'wrong'}:\n{result.failed}\n{result.error}"
    assert result.stats["programs"] >= 50 and result.stats["graphs"] > 25
