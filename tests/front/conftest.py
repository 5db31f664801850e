import pytest
import stand_in  # noqa: F401  (before the first import of cdynamo)

import cdynamo


@pytest.fixture(autouse=True)
def fresh(tmp_path):
    """Every test starts with nothing compiled, strict, and its own place for reports."""
    cdynamo.reset()
    with cdynamo.config.patch(strict=True, report_directory=str(tmp_path / "reports")):
        yield
    cdynamo.reset()
