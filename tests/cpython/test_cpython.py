"""A few modules of `make cpython-tests`."""

import cpython_tests
import pytest

MODULES = ("test_dictcomps", "test_exception_variations", "test_exception_hierarchy", "test_bool", "test_int_literal", "test_numeric_tower")


@pytest.mark.parametrize("module", MODULES)
def test_module_of_cpython(module):
    result = cpython_tests.run_module(module)
    assert not (result.wrong or result.crashes or result.timeouts), (result.wrong, result.crashes, result.timeouts)
    assert result.passed > 5 and result.whole > 0
