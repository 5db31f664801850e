#!/usr/bin/env python3
"""Capture and call speed of cdynamo beside torch.compile, in one run: each number is taken in a process of its own, and the best counts.

python bench/bench.py                     all measures, with the floor each must reach
python bench/bench.py --only call,first   some of them
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# name: (what, unit, floor of torch's number over ours)
MEASURES = {
    "bytecodes": ("capture, 10,000 plain bytecodes", "s", 30),
    "inlined": ("capture, 1,000 inlined calls", "s", 30),
    "blocks": ("capture, 64 transformer-like blocks", "s", 15),
    "chain200": ("capture, chain of 200 ops", "s", 10),
    "chain5000": ("capture, chain of 5,000 ops", "s", 10),
    "call": ("call of a function, no-op backend", "s", 8),
    "module_call": ("call of a 100-block module, no-op backend", "s", 5),
    "first": ("first result in a fresh process", "s", 15),
    "second": ("a second small function", "s", 20),
    "memory": ("peak memory growth of a capture", "KiB", 1),
}


def child(name: str, front: str) -> None:
    warnings.filterwarnings("ignore")
    sys.path.insert(0, ROOT)
    sys.path.insert(0, HERE)
    import workloads

    print(json.dumps(workloads.measure(name, front)))


def best(name: str, front: str, processes: int) -> tuple[float | None, str]:
    """The least of several processes' numbers, or None and the last line of what went wrong."""
    numbers, error = [], ""
    environment = {**os.environ, "CDYNAMO_STRICT": "1"}
    for _ in range(processes):
        done = subprocess.run(
            [sys.executable, __file__, "--child", name, "--front", front], capture_output=True, text=True, cwd=ROOT, env=environment
        )
        if done.returncode == 0:
            numbers.append(float(json.loads(done.stdout.splitlines()[-1])))
        else:
            lines = done.stderr.strip().splitlines()
            error = lines[-1] if lines else f"exit {done.returncode}"
            break
    return (min(numbers), "") if numbers else (None, error)


def shown(number: float, unit: str) -> str:
    if unit != "s":
        return f"{number:,.0f} {unit}"
    if number < 1e-3:
        return f"{number * 1e6:.2f} us"
    return f"{number * 1e3:.2f} ms" if number < 1 else f"{number:.2f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names separated by commas: " + ", ".join(MEASURES))
    parser.add_argument("--front", default="cdynamo")
    parser.add_argument("--against", default="torch")
    parser.add_argument("--processes", type=int, default=2, help="how many processes each number is the best of")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, asked.front)
        return 0
    names = asked.only.split(",") if asked.only else list(MEASURES)
    met = 0
    print(f"{'':44s} {asked.against:>12s} {asked.front:>12s} {'ratio':>8s} {'floor':>6s}")
    for name in names:
        what, unit, floor = MEASURES[name]
        theirs, their_error = best(name, asked.against, asked.processes)
        ours, our_error = best(name, asked.front, asked.processes)
        if theirs is None or ours is None:
            print(f"{what:44s} FAIL: {their_error or our_error}", flush=True)
            continue
        ratio = theirs / ours
        good = ratio >= floor
        met += good
        print(f"{what:44s} {shown(theirs, unit):>12s} {shown(ours, unit):>12s} {ratio:7.1f}x {floor:5d}x {'pass' if good else 'FAIL'}", flush=True)
    print(f"bench: {met} of {len(names)} floors met")
    return 0 if met == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
