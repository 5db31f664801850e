"""Every case of the differential oracle again, with every capture broken at its nth instruction: at n = 1 CPython runs each instruction of
the traced frames, and each is a place to go on from."""

import importlib
import zlib
from pathlib import Path

import pytest
from differ import Comparison, run_world
from known import KNOWN
from known_breaks import KNOWN_STRESS

import cdynamo

STEPS = (1, 2, 3, 5, 9)


def named_cases():
    """Every case of the differential tests that is not known to fail."""
    for path in sorted((Path(__file__).parents[1] / "differential").glob("test_*.py")):
        module = importlib.import_module(path.stem)
        for case in module.cases.cases if hasattr(module, "cases") else ():
            name = f"{path.stem.removeprefix('test_')}.{case.name}"
            if name not in KNOWN:
                yield name, case


# What is dead after a break is not kept for debuggers to look at.
SHOWS_DEAD_VARIABLES = "traceback_variables."


def all_cases():
    for name, case in named_cases():
        if name.startswith(SHOWS_DEAD_VARIABLES):
            continue
        marks = [pytest.mark.xfail(reason=KNOWN_STRESS[name], strict=True)] if name in KNOWN_STRESS else []
        yield pytest.param(case, step_of(name), id=name, marks=marks)


def step_of(name: str) -> int:
    """The same for a case whatever other cases there are."""
    return STEPS[zlib.crc32(name.encode()) % len(STEPS)]


@pytest.mark.parametrize("case, every", list(all_cases()))
def test_broken_at_every_nth_instruction(case, every):
    with cdynamo.config.patch(strict=True, break_every=every, recompile_limit=64):
        check_broken(case)


def check_broken(case):
    eager, broken = run_world(case, None), run_world(case, "eager")
    for step, (expected, actual) in enumerate(zip(eager, broken, strict=True)):
        try:
            Comparison().compare(expected, actual, f"call {step}")
        except AssertionError as error:
            raise AssertionError(f"{error}\neager error: {expected.error!r}; compiled error: {actual.error!r}") from actual.error
