"""Deep recursion and deep nesting: RecursionError as in eager mode, or a captured answer; never the end of the C stack."""

import copy
import subprocess
import sys
import threading

import pytest
import torch

import cdynamo


def nested(n, leaf=1, make=lambda inner: [inner]):
    for _ in range(n):
        leaf = make(leaf)
    return leaf


def outcome(fn, args):
    """What a call comes to, without holding on to what is nested deep."""
    try:
        fn(*args)
    except RecursionError as error:
        # " while ..." tells which of the calls in turn was one too many: a matter of how deep the test runner is.
        return type(error), str(error).partition(" while ")[0]
    return "fine"


def compare(fn, *args):
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        assert outcome(cdynamo.compile(fn, backend="eager"), args) == outcome(fn, args)


def untouched(x, deep):
    return x + 1, deep


def compared(x, a, b):
    return x + 1, a == b


def shown(x, a):
    return x + 1, repr(a)


def copied(x, a):
    return x + 1, copy.deepcopy(a)


@pytest.mark.parametrize("depth", [200, 3000, 100_000])
@pytest.mark.parametrize("fn", [untouched, compared, shown, copied], ids=lambda fn: fn.__name__)
def test_nested_inputs(fn, depth):
    compare(fn, torch.ones(2), *(nested(depth) for _ in range(fn.__code__.co_argcount - 1)))


def made(x, n):
    value = x + 1
    for _ in range(n):
        value = [value]
    return value


def made_and_compared(x, n):
    a = b = 1
    for _ in range(n):
        a, b = [a], [b]
    return x + 1, a == b


def made_and_shown(x, n):
    a = 1
    for _ in range(n):
        a = {"k": a}
    return x + 1, repr(a)


def recursive(x, n):
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    return x + depth(n)


def recursive_generators(x, n):
    def below(n):
        if n:
            yield from below(n - 1)
        yield n

    return x + sum(below(n))


class Box:
    def __init__(self, inner):
        self.inner = inner

    def __eq__(self, other):
        return self.inner == other.inner

    def __repr__(self):
        return f"Box({self.inner!r})"


def boxes_compared(x, n):
    a = b = 1
    for _ in range(n):
        a, b = Box(a), Box(b)
    return x + 1, a == b


def boxes_shown(x, n):
    a = 1
    for _ in range(n):
        a = Box(a)
    return x + 1, repr(a)


MAKERS = [made, made_and_compared, made_and_shown, recursive, recursive_generators, boxes_compared, boxes_shown]


@pytest.mark.parametrize("depth", [200, 2000])
@pytest.mark.parametrize("fn", MAKERS, ids=lambda fn: fn.__name__)
def test_nested_inside(fn, depth):
    compare(fn, torch.ones(2), depth)


SMALL = """
import sys, threading
sys.path.insert(0, {here!r})
import torch, cdynamo
import test_deep_nesting as cases

failed = []

def work():
    for fn in cases.MAKERS:
        try:
            cdynamo.reset()
            cdynamo.compile(fn, backend="eager")(torch.ones(2), 100)
        except BaseException as error:
            failed.append((fn.__name__, repr(error)))
    for fn in (cases.compared, cases.shown, cases.untouched):
        args = [cases.nested(100) for _ in range(fn.__code__.co_argcount - 1)]
        cdynamo.compile(fn, backend="eager")(torch.ones(2), *args)

threading.stack_size({size})
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert not failed, failed
"""


@pytest.mark.parametrize("size", [512 * 1024, 2048 * 1024])
def test_threads_with_small_stacks(size):
    here = __file__.rpartition("/")[0]
    ran = subprocess.run([sys.executable, "-c", SMALL.format(here=here, size=size)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]


def test_many_threads_recurse_at_once():
    compiled = cdynamo.compile(recursive, backend="eager")
    results = []
    threads = [threading.Thread(target=lambda: results.append(compiled(torch.zeros(1), 150).item())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [150.0] * 4
