"""A batch of random programs in one process: batch.py SEED COUNT REPORT [--fork]

REPORT gets a line of JSON for each program before it runs, and the result at the end. With --fork each program runs in a process of its
own, so that one that crashes is a failure like any other and is shrunk.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable

from check import Stats, check_program, compiles
from deeper import programs
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.internal.conjecture import engine

engine.MAX_SHRINKING_SECONDS = 40  # instead of five minutes
SHRUNK = 2  # failures of a batch that are made smaller; the others are told as they are


def forked(program: str) -> Stats:
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(60)
                check_program(program)
                os._exit(0)
            except BaseException as error:
                said.write(text_of(error))
                said.flush()
                os._exit(1)
        status = os.waitpid(child, 0)[1]
        if status:
            said.seek(0)
            raise AssertionError(f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said.read())
    return Stats(1)


def text_of(error: BaseException) -> str:
    return str(error) if isinstance(error, AssertionError) else "".join(traceback.format_exception(error))


def kind_of(text: str) -> str:
    """The same for failures that most likely have one cause."""
    return re.sub(r"0x[0-9a-f]+|\d+|\[.*?\]", "", text)


def generate(number: int, count: int, phases: tuple[Phase, ...], body: Callable[[str], None]) -> None:
    @seed(number)
    @settings(
        max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
        phases=phases, print_blob=False,
    )  # fmt: skip
    @given(programs())
    def run(program: str) -> None:
        assume(compiles(program) is not None)
        body(program)

    run()


def main(number: int, count: int, path: str, fork: bool) -> None:
    stats = Stats()
    failures: dict[str, str] = {}  # error by program
    met: set[str] = set()
    run = forked if fork else check_program
    with open(path, "a") as report:

        def say(**line: object) -> None:
            report.write(json.dumps(line) + "\n")
            report.flush()

        def try_(program: str) -> None:
            nonlocal stats
            assume(program not in met)
            met.add(program)
            say(program=program)
            try:
                stats += run(program)
            except Exception as error:
                stats += Stats(1)
                failures[program] = text_of(error)

        generate(number, count, (Phase.generate,), try_)

        def shrink(target: str) -> tuple[str, str]:
            """The same programs again, of which only this one and what is made of it are run."""
            last = ""
            seen: set[str] = set()
            kind = kind_of(failures[target])

            def again(program: str) -> None:
                nonlocal last
                if program != target and not last:
                    assume(program not in seen)
                    seen.add(program)
                    return
                say(shrunk=program)
                try:
                    run(program)
                except Exception as error:
                    assume(kind_of(text_of(error)) == kind)
                    last = program
                    raise AssertionError(text_of(error)) from None

            try:
                generate(number, count, (Phase.generate, Phase.shrink), again)
            except Exception as error:
                return last or target, text_of(error) if last else failures[target]
            return target, failures[target]

        told: dict[str, tuple[str, str]] = {}
        for program, error in failures.items():
            if (kind := kind_of(error)) not in told:
                told[kind] = shrink(program) if len(told) < SHRUNK else (program, error)
        say(stats=dataclasses.asdict(stats), failed=len(failures), told=list(told.values()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], "--fork" in sys.argv)
