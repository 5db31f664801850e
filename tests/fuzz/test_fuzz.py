"""The first hundred programs of `make fuzz`."""

import fuzz
import pytest


@pytest.mark.parametrize("batch", [0, 1])
def test_random_programs(batch):
    result = fuzz.run_batch(batch, 50)
    assert not result.told, "\n".join(f"{program}\n{error}" for program, error in result.told)
    assert result.stats["programs"] >= 50 and result.stats["graphs"] > 25
