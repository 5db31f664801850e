"""One random program through the differential oracle: eagerly, captured, captured from below, and broken at every nth instruction."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "differential"))

from differ import Case, Comparison, Seen, Setup, callees_captured, run_world, t
from programs import whole_text

import cdynamo

STEPS = (1, 2, 3, 5, 9, 14)
WATCHED = ("G", "GLIST", "GDICT", "NET", "DEEP")


@dataclasses.dataclass
class Stats:
    programs: int = 0
    graphs: int = 0  # programs with at least one graph
    whole: int = 0  # captured without a break
    raised: int = 0
    broken: int = 0
    skipped: int = 0

    def __add__(self, other: Stats) -> Stats:
        return Stats(*(getattr(self, f.name) + getattr(other, f.name) for f in dataclasses.fields(Stats)))


def compiles(program: str) -> CodeType | None:
    try:
        return compile(whole_text(program), "<program>", "exec", dont_inherit=True)
    except SyntaxError:
        return None


def build(code: CodeType) -> Setup:
    space: dict[str, Any] = {"__name__": "program", "t": t, "torch": torch}
    exec(code, space)
    which = 0

    def change() -> None:
        nonlocal which
        which = 1
        space["change"]()

    return Setup(
        space["f"],
        lambda: space[f"arguments_{which}"](),
        watch=lambda: [*(space[name] for name in WATCHED), *space["class_state"]()],
        changes=[change],
    )


def compare(eager: list[Seen], captured: list[Seen], world: str) -> None:
    for step, (expected, actual) in enumerate(zip(eager, captured, strict=True)):
        try:
            Comparison().compare(expected, actual, f"{world}, call {step}")
        except AssertionError as error:
            raise AssertionError(f"{error}\neager error: {expected.error!r}; captured error: {actual.error!r}") from None


def check_program(program: str) -> Stats:
    code = compile(whole_text(program), "<program>", "exec", dont_inherit=True)
    case = Case("program", lambda: build(code))
    step = STEPS[sum(map(ord, program)) % len(STEPS)]
    with cdynamo.config.patch(strict=True):
        captured = run_world(case, "eager")
        compare(run_world(case, None), captured, "captured")
        compare(run_world(case, None), run_world(case, callees_captured), "callees captured")
    with cdynamo.config.patch(strict=True, break_every=step, recompile_limit=64):
        compare(run_world(case, None), run_world(case, "eager"), f"break_every={step}")
    first = captured[0]
    said = first.events
    return Stats(
        programs=1,
        graphs=int(any(said.ops)),
        whole=int(not said.breaks and said.captures > 0),
        raised=int(first.error is not None),
        broken=int(bool(said.breaks)),
        skipped=int(said.captures == 0),
    )
