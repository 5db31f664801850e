"""Every case of the differential oracle again, with every capture broken at its nth instruction: at n = 1 CPython runs each instruction of
the traced frames, and each is a place to go on from."""

import importlib
import zlib

import pytest
from differ import Comparison, run_world
from known import KNOWN
from known_breaks import KNOWN_STRESS

import cdynamo

TOPICS = (
    "builtins", "classes", "containers", "control", "corners", "functions", "modules", "protocols", "tensor_programs", "guards_miss",
    "lang_exceptions", "lang_functions", "lang_syntax", "lang_async", "lang_run_time_errors", "autograd", "subclasses", "nn_library",
    "existing_iterators", "class_creation", "class_attributes", "class_protocols", "class_library", "exceptions_found",
    "found5_library", "found5_classes", "found5_language", "found6_fuzz",
)  # fmt: skip
STEPS = (1, 2, 3, 5, 9)


def all_cases():
    for topic in TOPICS:
        for case in importlib.import_module(f"test_{topic}").cases.cases:
            name = f"{topic}.{case.name}"
            if name in KNOWN:
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
