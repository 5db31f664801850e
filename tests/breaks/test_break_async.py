"""Coroutines and async generators broken at every nth instruction, for more n than the stress of all cases has: a break inside what stands
for a method of theirs must leave CPython's own objects behind."""

import pytest
import test_exceptions_found
import test_lang_async
from test_break_stress import KNOWN, KNOWN_STRESS, check_broken

import cdynamo

FOUND = [c for c in test_exceptions_found.cases.cases if "async" in c.name]
CASES = [c for c in test_lang_async.cases.cases if f"lang_async.{c.name}" not in {**KNOWN, **KNOWN_STRESS}] + FOUND


@pytest.mark.parametrize("every", (4, 7, 8, 10, 13))
@pytest.mark.parametrize("case", [pytest.param(c, id=c.name) for c in CASES])
def test_broken(case, every):
    with cdynamo.config.patch(strict=True, break_every=every, recompile_limit=64):
        check_broken(case)
