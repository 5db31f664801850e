"""Expressions, generated or listed, each run eagerly and inside one captured function; what they give must be equal.

    outcome = run("s.split(',', n)", "s = 'a,b,c'; n = 1")

The function computes on a tensor, runs the setup, evaluates the expression (an exception is a result too) and returns the value with every
name that the setup bound, so that changes of the subjects are compared as well.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import functools
import gc
import re
import textwrap
import types
from collections.abc import Iterable
from typing import Any

import torch
from differ import Comparison, Events

import cdynamo
from cdynamo._events import listening

ADDRESS = re.compile(r"0x[0-9a-f]+")

TEMPLATE = """
def probe(x):
    y = x + 1
{setup}
    try:
        r = {expression}
    except Exception as error:
        r = ("raised", type(error), error.args, type(error.__context__), type(error.__cause__))
    return y, r, ({names})
"""


@dataclasses.dataclass
class Outcome:
    expression: str
    setup: str
    breaks: list[str]
    wrong: str | None

    def __str__(self) -> str:
        said = f"WRONG {self.wrong}" if self.wrong else "; ".join(self.breaks) or "captured"
        return f"{self.expression}   [{self.setup}]: {said}"


class Ordered(Comparison):
    """Also the order of sets is compared, and texts without the addresses that they show."""

    def walk(self, a: Any, b: Any, path: str) -> None:
        if type(a) is str and type(b) is str:
            a, b = ADDRESS.sub("0x", a), ADDRESS.sub("0x", b)
        elif type(a) is slice and type(b) is slice:
            a, b = (a.start, a.stop, a.step), (b.start, b.stop, b.step)
        super().walk(a, b, path)

    def contents(self, a: Any, b: Any, path: str) -> None:
        super().contents(a, b, path)
        if isinstance(a, (set, frozenset)):
            for i, (left, right) in enumerate(zip(a, b, strict=True)):
                self.walk(left, right, f"{path} item {i} in order"[:300])
        elif isinstance(a, (collections.abc.KeysView, collections.abc.ValuesView, collections.abc.ItemsView)):
            for i, (left, right) in enumerate(zip(a, b, strict=True)):
                self.walk(left, right, f"{path} item {i} of view"[:300])
        elif isinstance(a, (bytearray, memoryview)):
            self.walk(bytes(a), bytes(b), path)


def bound_names(setup: str) -> list[str]:
    targets = [target for node in ast.parse(setup).body if isinstance(node, ast.Assign) for target in node.targets]
    return [target.id for target in targets if isinstance(target, ast.Name)]


@functools.cache
def code_of(expression: str, setup: str) -> types.CodeType:
    names = bound_names(setup)
    lines = textwrap.indent(setup.replace("; ", "\n") or "pass", "    ")
    source = TEMPLATE.format(setup=lines, expression=expression, names="".join(f"{name}, " for name in names))
    return compile(source, f"<{expression}>", "exec")


def make(expression: str, setup: str, namespace: dict[str, Any]) -> Any:
    """A new function of the same code each time, with globals of its own."""
    scope = dict(namespace)
    exec(code_of(expression, setup), scope)
    return scope["probe"]


def run(expression: str, setup: str = "", namespace: dict[str, Any] | None = None) -> Outcome:
    namespace = namespace or {}
    cdynamo.reset()
    events = Events()
    outcome = Outcome(expression, setup, events.breaks, None)
    with cdynamo.config.patch(strict=True), torch.no_grad():
        expected = make(expression, setup, namespace)(torch.ones(2))
        compiled = cdynamo.compile(make(expression, setup, namespace), backend="eager")
        try:
            with listening(events.record):
                first = compiled(torch.ones(2))
                again = compiled(torch.ones(2))
            Ordered().walk(expected, first, "result")
            expected = make(expression, setup, namespace)(torch.ones(2))  # comparing uses iterators up
            Ordered().walk(expected, again, "second result")
        except AssertionError as error:
            outcome.wrong = str(error)
        except Exception as error:
            outcome.wrong = f"raised {type(error).__name__}: {error}"
    if not outcome.breaks and not outcome.wrong and not events.ops:
        outcome.breaks.append("nothing captured")
    return outcome


def sweep(rows: Iterable[tuple[str, str]], namespace: dict[str, Any] | None = None) -> list[Outcome]:
    """The rows that were not captured whole, or gave something else."""
    found = []
    for i, (expression, setup) in enumerate(rows):
        outcome = run(expression, setup, namespace)
        if outcome.wrong or outcome.breaks:
            found.append(outcome)
        if i % 500 == 499:
            gc.collect()
    return found
