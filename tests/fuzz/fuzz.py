"""Random programs through the differential oracle: `make fuzz`.

    fuzz.py [--seed N] [--count N] [--batch N] [-j N]

Programs run in batches, a process each. Of the programs of a batch that come out wrong one of each kind is printed, the first two shrunk.
Where a program takes the process down, its batch runs again with a process per program.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
QUIET = 60.0  # seconds of work without a new program: it hangs
ASLEEP = 1200.0  # seconds without one in any case

sys.path.insert(0, str(HERE.parent))
from cpu_time import cpu_seconds  # noqa: E402


@dataclasses.dataclass
class Result:
    stats: dict[str, int]
    wrong: int = 0
    crashes: int = 0
    told: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # programs with what is wrong


def run_batch(seed: int, count: int, fork: bool = False) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        report.touch()
        command = [sys.executable, str(HERE / "batch.py"), str(seed), str(count), str(report), *(["--fork"] if fork else [])]
        environment = os.environ | {"CDYNAMO_STRICT": "1", "PYTHONHASHSEED": "0", "PYTHONFAULTHANDLER": "1", "CDYNAMO_REPORTS": folder}
        with open(Path(folder) / "stderr", "w+") as stderr:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
            hangs = False
            size, worked, since = -1, 0.0, time.monotonic()
            while process.poll() is None:
                if report.stat().st_size != size:
                    size, worked, since = report.stat().st_size, cpu_seconds(process.pid), time.monotonic()
                elif cpu_seconds(process.pid) - worked > QUIET or time.monotonic() - since > ASLEEP:
                    hangs = True
                    process.kill()
                    process.wait()
                time.sleep(0.05)
            stderr.seek(0)
            said = stderr.read()
        lines = [json.loads(line) for line in report.read_text().splitlines()]
    last = lines[-1] if lines else {}
    if "stats" in last:
        crashes = sum(error.startswith("signal") for _, error in last["told"])
        return Result(last["stats"], last["failed"] - crashes, crashes, last["told"])
    programs = [line["program"] for line in lines if "program" in line]
    if not fork:
        again = run_batch(seed, count, fork=True)
        if again.wrong or again.crashes:
            return again
    how = "no answer" if hangs else f"exit status {process.returncode}"
    running = next((line.get("shrunk") or line.get("program") for line in reversed(lines)), "(no program)")
    return Result({"programs": len(programs)}, 0, 1, [(running, f"{how}\n{said[-3000:]}")])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    print(f"seed {options.seed}")
    total: dict[str, int] = {}
    wrong = crashes = 0
    numbers = range(-(-options.count // options.batch))
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for number, result in zip(numbers, pool.map(lambda n: run_batch(options.seed * 100_000 + n, options.batch), numbers)):
            for key, value in result.stats.items():
                total[key] = total.get(key, 0) + value
            wrong += result.wrong
            crashes += result.crashes
            for program, error in result.told:
                print(f"\n---- batch {number} ----\n{program}\n{error}\n", flush=True)
    count = total.get("programs", 0)

    def share(key: str) -> float:
        return 100 * total.get(key, 0) / max(count, 1)

    print(
        f"of the first calls: {share('graphs'):.0f}% in at least one graph, {share('whole'):.0f}% without a break, "
        f"{share('broken'):.0f}% with breaks, {share('skipped'):.0f}% not captured; {share('raised'):.0f}% raised"
    )
    print(f"fuzz: {count} programs, {wrong} wrong, {crashes} crashes, {share('graphs'):.0f}% captured")
    return bool(wrong or crashes)


if __name__ == "__main__":
    sys.exit(main())
