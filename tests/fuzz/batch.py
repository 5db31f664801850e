"""A batch of random programs in one process: batch.py SEED COUNT REPORT [--fork]

REPORT gets a line of JSON for each program before it runs, and the result at the end. With --fork each program runs in a process of its
own, so that one that crashes is a failure like any other and is shrunk.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import traceback

from check import Stats, check_program, compiles
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from programs import programs


def forked(program: str) -> Stats:
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            check_program(program)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if status:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "a wrong result"
        raise AssertionError(how)
    return Stats(1)


def main(number: int, count: int, path: str, fork: bool) -> None:
    stats = Stats()
    last = ""
    met: set[str] = set()
    with open(path, "a") as report:

        def say(**line: object) -> None:
            report.write(json.dumps(line) + "\n")
            report.flush()

        @seed(number)
        @settings(
            max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
            phases=(Phase.generate, Phase.shrink), print_blob=False,
        )  # fmt: skip
        @given(programs())
        def run(program: str) -> None:
            nonlocal stats, last
            if last:  # of a failure: the same programs run again and again
                assume(compiles(program) is not None)
            else:
                assume(program not in met and compiles(program) is not None)
            met.add(program)
            say(program=program)
            try:
                result = forked(program) if fork else check_program(program)
                stats += result if not last else Stats()  # what is tried to shrink a failure does not count
            except Exception:
                stats += Stats(1) if not last else Stats()
                last = program
                raise

        try:
            run()
            say(stats=dataclasses.asdict(stats))
        except Exception as error:
            text = "".join(traceback.format_exception(error)) if not isinstance(error, AssertionError) else str(error)
            say(stats=dataclasses.asdict(stats), failed=last, error=text)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], "--fork" in sys.argv)
