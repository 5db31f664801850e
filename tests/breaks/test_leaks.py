"""Every case of the differential oracle again, called many times after it has settled: nothing may grow per call. Also with a break
forced at every nth instruction. And what a capture holds dies with it."""

import contextlib
import gc
import io
import os
import random
import sys
import warnings
import weakref

import pytest
import torch
from differ import Setup, t
from test_break_stress import named_cases, step_of

import cdynamo

CALLS = 40
SINGLETONS = (None, True, False, (), torch.float32, torch.Tensor, int, dict)


@pytest.fixture(autouse=True)
def only_new_objects():
    """What exists already is left out of collections, which makes them fast."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def all_cases():
    """All of them in `make leaks`; one in ten in `make test`."""
    for number, (name, case) in enumerate(named_cases()):
        if number % 10 == 0 or os.environ.get("CDYNAMO_LEAKS"):
            yield pytest.param(case, step_of(name), id=name)


def call(compiled, setup: Setup) -> None:
    """One call as the oracle makes it, with nothing kept."""
    given = setup.args()
    pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict)
    args, kwargs = given if pair else (given, {})
    torch.manual_seed(7)
    random.seed(7)
    with contextlib.suppress(Exception):
        setup.after(compiled(*args, **kwargs))


def growth(run, calls: int) -> tuple[int, int, list[int]]:
    """By how much blocks, objects and the singletons' reference counts grew over so many calls."""

    def counts():
        for _ in range(3):  # what the engine lets go after one holds cycles; the last one empties free lists too
            gc.collect()
        sys._clear_type_cache()  # holds the last names that were looked up on types
        return sys.getallocatedblocks(), len(gc.get_objects()), [sys.getrefcount(s) for s in SINGLETONS]

    before = counts()
    for _ in range(calls):
        run()
    after = counts()
    return after[0] - before[0], after[1] - before[1], [b - a for a, b in zip(before[2], after[2])]


def leaks(run, calls: int = CALLS, expected: int = 0) -> str | None:
    """What grows with each call, and not now and then: caches of CPython and torch settle late."""
    for many in (calls, calls, 5 * calls):
        blocks, objects, singletons = growth(run, many)
        if blocks - expected * many < many and objects < many and all(n < many for n in singletons):
            return None
    return f"{many} calls leave {blocks} blocks, {objects} objects and {singletons} references to singletons behind"


def world(case, every: int, compiled: bool, expected: int = 0) -> str | None:
    cdynamo.reset()
    setup = case.build()
    function = cdynamo.compile(setup.fn, backend="eager") if compiled else setup.fn
    out = io.StringIO()
    limits = {"accumulated_recompile_limit": 16}  # so that a case with another object in each call reaches it soon

    def run() -> None:
        out.seek(0)
        out.truncate()
        call(function, setup)

    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), cdynamo.config.patch(strict=True, break_every=every, **limits):
            warnings.simplefilter("ignore")
            for _ in range(12):  # enough for a case that reaches the limit of recompiles
                run()
            return leaks(run, expected=expected)
    finally:
        setup.cleanup()
        torch.set_grad_enabled(True)
        cdynamo.reset()


@pytest.mark.parametrize("case, every", list(all_cases()))
def test_nothing_grows_per_call(case, every):
    for step in (0, every):
        said = world(case, step, compiled=True)
        # A case may keep things on purpose (it counts its calls, say): so eager is asked too. Some functions of torch leave a block behind.
        if said is not None and world(case, 0, compiled=False) is None and (said := world(case, step, compiled=True, expected=1)):
            pytest.fail(f"break_every={step}: {said}")


def test_arguments_keep_their_reference_counts():
    def f(x, items, table, note):
        items.append(x * 2)
        table["k"] = [note, items[-1]]
        if len(items) > 1:
            cdynamo.graph_break()
        return table["k"], x + len(items)

    compiled = cdynamo.compile(f, backend="eager")
    x, note = t(3), object()
    for _ in range(4):
        compiled(x, [], {}, note)
    before = sys.getrefcount(x), sys.getrefcount(note)
    for _ in range(20):
        compiled(x, [], {}, note)
    assert (sys.getrefcount(x), sys.getrefcount(note)) == before


def test_exceptions_leave_nothing():
    def f(x, fail):
        y = x + 1
        try:
            if fail:
                raise ValueError(y)
        finally:
            y = y * 2
        cdynamo.graph_break()
        return y

    compiled = cdynamo.compile(f, backend="eager")
    x = t(3)

    def run():
        with contextlib.suppress(ValueError):
            compiled(x, True)

    for _ in range(4):
        run()
    assert leaks(run) is None


@pytest.mark.parametrize("breaks", (False, True))
def test_a_capture_dies_with_its_function(breaks):
    graphs = []

    def backend(gm, inputs):
        graphs.append(weakref.ref(gm))
        return lambda *args: gm(*args)

    def make():
        table = {"k": torch.ones(3)}

        def f(x):
            y = x + table["k"]
            if breaks:
                cdynamo.graph_break()
            return y * 2

        compiled = cdynamo.compile(f, backend=backend)
        compiled(t(3))
        return compiled, weakref.ref(f), weakref.ref(table["k"])

    def make_another(n):
        cdynamo.compile(lambda x: x + n, backend=lambda gm, inputs: gm)(t(3))

    compiled, function, tensor = make()
    assert graphs and all(graph() is not None for graph in graphs) and function() is not None
    del compiled
    gc.collect()
    assert function() is None and tensor() is None, "captures hold neither"
    for n in range(16):  # so many may come back
        make_another(n)
    gc.collect()
    assert [ref() for ref in graphs] == [None] * len(graphs)


@pytest.mark.parametrize("breaks", (False, True))
def test_reset_frees_what_captures_hold(breaks):
    graphs = []

    def backend(gm, inputs):
        graphs.append(weakref.ref(gm))
        return lambda *args: gm(*args)

    def f(x):
        y = x + 1
        if breaks:
            cdynamo.graph_break()
        return y * 2

    compiled = cdynamo.compile(f, backend=backend)
    compiled(t(3))
    assert graphs and all(graph() is not None for graph in graphs)
    cdynamo.reset()
    gc.collect()
    assert [graph() for graph in graphs] == [None] * len(graphs)
    assert torch.equal(compiled(t(3)), f(t(3)))


def test_many_functions_leave_nothing():
    """Functions that are compiled, called and dropped."""

    def run():
        scale = object()

        def f(x):
            return (x * 2, scale)

        cdynamo.compile(f, backend="eager")(t(3))

    for _ in range(6):
        run()
    assert leaks(run, 300) is None  # entries are freed a few at a time
