"""What breaks cost: stack depth, memory, captures in long loops; capture time at each depth."""

import gc
import sys
import time

import pytest
import torch
from harness import CountingBackend, ext, t

import cdynamo
from cdynamo._events import listening


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


DEPTHS: list[int] = []
RESIDENT: list[int] = []


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@torch.compiler.disable
def observe(i=0):
    """Opaque: how deep the Python stack is."""
    frame, depth = sys._getframe(), 0
    while frame:
        frame, depth = frame.f_back, depth + 1
    DEPTHS.append(depth)
    if i % 1000 == 0:
        RESIDENT.append(resident())
    return i


def for_loop(x, n):
    for i in range(n):
        x = x + 1
        observe(i)
    return x * 2


def while_loop(x, n):
    left = iter(range(n))
    while True:
        x = x + 1
        if last(left):
            break
    return x * 2


@torch.compiler.disable
def last(left):
    i = next(left)
    observe(i)
    return i == 9_999


def in_with(x, n):
    for i in range(n):
        with torch.no_grad():
            x = x + 1
            observe(i)
    return x * 2


def in_try(x, n):
    for i in range(n):
        try:
            x = x + 1
            observe(i)
        except ValueError:
            x = x * 2
    return x * 2


def body(x, i):
    x = x + 1
    observe(i)
    return x


def in_callee(x, n):
    for i in range(n):
        x = body(x, i)
    return x * 2


def numbers(n):
    yield from range(n)


def over_generator(x, n):
    for i in numbers(n):
        x = x + 1
        observe(i)
    return x * 2


def over_zip(x, n):
    for i, _ in zip(range(n), iter(lambda: 1, 0)):
        x = x + 1
        observe(i)
    return x * 2


def nested(x, n):
    for _ in range(n // 10):
        for j in range(10):
            x = x + 1
            observe(j)
    return x * 2


def over_list(x, items):
    for i in items:
        x = x + 1
        observe(i)
    return x * 2


LOOPS = [for_loop, in_with, in_try, in_callee, over_generator, over_zip, nested]


def check_loop(fn, n, argument, graphs):
    DEPTHS.clear()
    RESIDENT.clear()
    backend = CountingBackend()
    told = []

    def fast(gm, inputs):
        backend(gm, inputs)
        return gm.forward

    with listening(lambda kind, payload: told.append((kind, payload.get("explanation")))):
        call = cdynamo.compile(fn, backend=fast)
        result = call(t(3), argument)
    expected = t(3)
    for _ in range(n):
        expected = expected + 1
    assert torch.equal(result, expected * 2)
    assert len(DEPTHS) == n
    assert len(set(DEPTHS[5:])) == 1, f"depths {sorted(set(DEPTHS))[:10]}"
    assert len(backend.graphs) <= graphs, backend.graphs
    kinds = [kind for kind, _ in told]
    assert kinds.count("capture") <= 2 * graphs, told[:20]  # also those without an operation
    settled = RESIDENT[2:]
    assert max(settled) - min(settled) < 4_000_000, settled


@pytest.mark.parametrize("fn", LOOPS, ids=lambda f: f.__name__)
def test_long_loop(fn):
    """10,000 iterations: constant stack depth and memory, at most 3 compiles."""
    check_loop(fn, 10_000, 10_000, graphs=4 if fn is nested else 3)


def test_long_while():
    check_loop(while_loop, 10_000, 10_000, graphs=3)


def test_long_list():
    check_loop(over_list, 10_000, list(range(10_000)), graphs=3)


def test_long_loop_of_data():
    """A data-dependent while over thousands of iterations."""
    backend = CountingBackend()

    def fn(x):
        while x.sum() < 5000:
            x = x + 1
        return x * 2

    call = cdynamo.compile(fn, backend=backend)
    assert torch.equal(call(torch.zeros(1)), torch.full((1,), 10000.0))
    assert len(backend.graphs) <= 3


def test_second_run_compiles_nothing():
    kinds = []
    call = cdynamo.compile(for_loop, backend="eager")
    call(t(3), 50)
    with listening(lambda kind, payload: kinds.append(kind)):
        call(t(3), 50)
        call(t(3), 50)
    assert "capture" not in kinds and "recompile" not in kinds


def test_no_garbage():
    """Nothing per iteration or per call is left for the collector."""
    call = cdynamo.compile(for_loop, backend="eager")
    call(t(3), 10)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(20):
            call(t(3), 10)
        after = len(gc.get_objects())
    finally:
        gc.enable()
    DEPTHS.clear()
    assert after - before < 50


def test_memory_over_many_broken_captures():
    def one(n):
        def fn(x):
            y = x * n
            observe(1)
            return y + 1

        cdynamo.compile(fn, backend="eager")(t(3))
        cdynamo.reset()

    for n in range(50):
        one(n)
    gc.collect()
    before = resident()
    for n in range(200):
        one(n)
    gc.collect()
    assert resident() - before < 8_000_000


# ---- capture time ----


def work(x):
    for i in range(20):
        x = x * i + 1
    return x


def quiet():
    return None


@torch.compiler.disable
def loud():
    return None


def make(depth, stop):
    """A function with work before and after the stop, in each of depth + 1 frames."""

    def leaf(x):
        x = work(x)
        stop()
        return work(x)

    fn = leaf
    for _ in range(depth):

        def level(x, inner=fn):
            x = work(x)
            x = inner(x)
            return work(x)

        fn = level
    return fn


def capture_seconds(fn):
    best = float("inf")
    x = t(3)
    for _ in range(7):
        cdynamo.reset()
        call = cdynamo.compile(fn, backend="eager")
        start = time.perf_counter()
        call(x)
        best = min(best, time.perf_counter() - start)
    cdynamo.reset()
    return best


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_graphs_at_depth(depth):
    backend = CountingBackend()
    fn = make(depth, loud)
    call = cdynamo.compile(fn, backend=backend)
    assert torch.equal(call(t(3)), fn(t(3)))
    assert len(backend.graphs) == 2
    assert sum(map(len, backend.graphs)) == 40 * 2 * (depth + 1)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_capture_time_at_depth(depth):
    """A break costs its own part only: within 1.3 of the same function without it."""
    ratios = []
    for _ in range(4):
        ratios.append(capture_seconds(make(depth, loud)) / capture_seconds(make(depth, quiet)))
        if ratios[-1] < 1.3:
            return
    raise AssertionError(ratios)


def test_call_time_of_a_loop():
    """A warm iteration with a break costs little over the eager one."""

    def fn(x, n):
        for _ in range(n):
            x = x + 1
            loud()
        return x

    call = cdynamo.compile(fn, backend="eager")
    x = t(3)
    call(x, 1000)

    def best(f):
        took = []
        for _ in range(5):
            start = time.perf_counter()
            f(x, 1000)
            took.append(time.perf_counter() - start)
        return min(took)

    assert best(call) < 10 * best(fn) + 0.02


def test_endless_recursion_is_an_error():
    def endless(x):
        x = x + 1
        ext(x)
        return endless(x)

    cdynamo.reset()
    with cdynamo.config.patch(strict=True), pytest.raises(RecursionError, match="maximum recursion depth exceeded"):
        cdynamo.compile(endless, backend="eager")(t(3))


def test_deep_recursion_with_a_break_at_each_level():
    def deep(x, n):
        x = x + 1
        ext(x)
        return x if n == 0 else deep(x, n - 1) * 1.0

    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        compiled = cdynamo.compile(deep, backend="eager")
        for n in (3, 100, 300):
            assert torch.equal(compiled(t(3), n), deep(t(3), n))
