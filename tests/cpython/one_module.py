"""Runs the tests of one module of CPython's `test` package, plainly or with each test's body captured, and writes what happened.

    one_module.py MODULE plain|captured REPORT [id of a test to leave out, ...]

A line of JSON goes to REPORT before each test ({"start": id}) and after it, so that whoever started this knows which test took the
process down. setUp, tearDown and the class's own fixtures run plainly: only the body of the test is a frame of the engine. Of doctests
each example is one.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import sys
import time
import types
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import cdynamo
from cdynamo._events import listening


class Outcome(unittest.TestResult):
    """The one word for how a test ended, and what it said."""

    def __init__(self) -> None:
        super().__init__()
        self.word, self.detail = "passed", ""

    def set(self, word: str, detail: str = "") -> None:
        if self.word == "passed":
            self.word, self.detail = word, detail

    def addError(self, test: Any, err: Any) -> None:
        self.set("error", self._exc_info_to_string(err, test))

    def addFailure(self, test: Any, err: Any) -> None:
        self.set("failure", self._exc_info_to_string(err, test))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self.set("failure", f"{subtest}: " + self._exc_info_to_string(err, test))

    def addSkip(self, test: Any, reason: str) -> None:
        self.set("skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        self.set("expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.set("unexpected success")


class Told:
    """What the engine said while a test ran."""

    def __init__(self) -> None:
        self.captures = 0
        self.breaks: list[str] = []
        self.skips: list[str] = []

    def __call__(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "capture":
            self.captures += 1
        elif kind == "break":
            self.breaks.append(f"{payload['reason']}: {payload.get('context')}")
        elif kind == "skip":
            self.skips.append(f"{payload['reason']}: {payload.get('context')}")


def tests_of(suite: Any) -> Iterator[unittest.TestCase]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from tests_of(test)
        elif isinstance(test, unittest.TestCase):
            yield test


def captured_exec(source: Any, globs: dict[str, Any], local: Any = None) -> Any:
    """An example of a doctest, as a function of no arguments whose locals are its globals."""
    return cdynamo.compile(types.FunctionType(source, globs), backend="eager")()


def capture_body(test: unittest.TestCase) -> None:
    """The bound method that unittest will call becomes a compiled one."""
    if isinstance(test, doctest.DocTestCase):
        doctest.exec = captured_exec  # type: ignore[attr-defined]
        return
    name = test._testMethodName
    body = getattr(test, name)
    compiled = cdynamo.compile(body, backend="eager")

    def call() -> Any:
        return compiled()

    call.__dict__.update(getattr(body, "__dict__", {}))  # marks such as those of expectedFailure and skip
    test.__dict__[name] = call


def run(test: unittest.TestCase, captured: bool) -> dict[str, Any]:
    outcome, told = Outcome(), Told()
    out = io.StringIO()
    if captured:
        capture_body(test)
    begin = time.process_time()
    with contextlib.redirect_stdout(out), warnings.catch_warnings(), listening(told):
        test.run(outcome)
    report = {"outcome": outcome.word, "detail": outcome.detail[-4000:], "seconds": time.process_time() - begin}
    if captured:
        report |= {"captures": told.captures, "breaks": told.breaks[:50], "broken": len(told.breaks), "skips": told.skips[:50]}
        cdynamo.reset()
    return report


def main(name: str, mode: str, path: str, left_out: set[str]) -> None:
    module = importlib.import_module(f"test.{name}")
    loader = unittest.TestLoader()
    seen: set[str] = set()
    set_up: Callable[[], Any] | None = getattr(module, "setUpModule", None)
    tear_down: Callable[[], Any] | None = getattr(module, "tearDownModule", None)
    with open(path, "a") as report:

        def say(**line: Any) -> None:
            report.write(json.dumps(line) + "\n")
            report.flush()

        if set_up is not None:
            set_up()
        current: Any = None
        for test in tests_of(loader.loadTestsFromModule(module)):
            # Classes that a function makes share their names.
            name_of_test, again = test.id(), 1
            while name_of_test in seen:
                again += 1
                name_of_test = f"{test.id()}#{again}"
            seen.add(name_of_test)
            if name_of_test in left_out:
                continue
            if type(test) is not current:
                if current is not None:
                    current.tearDownClass()
                    current.doClassCleanups()
                current = type(test)
                if getattr(current, "__unittest_skip__", False):
                    current = None
                    continue
                try:
                    current.setUpClass()
                except unittest.SkipTest:
                    current = None
                    continue
            say(start=name_of_test)
            say(done=name_of_test, **run(test, mode == "captured"))
        if current is not None:
            current.tearDownClass()
            current.doClassCleanups()
        if tear_down is not None:
            tear_down()
        say(end=name)


if __name__ == "__main__":
    sys.setrecursionlimit(max(1000, sys.getrecursionlimit()))
    main(sys.argv[1], sys.argv[2], sys.argv[3], set(sys.argv[4:]))
