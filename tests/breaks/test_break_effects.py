"""Effects happen once and in order: also when a backend fails, when guards miss in a continuation, when a capture is given up."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import logging
import random
import warnings

import pytest
import torch
from harness import LOG, Breaks, CountingBackend, Setup, boom, ext, note, t

import cdynamo

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario

STATE = {"n": 0}
TOTAL = 0
SCALE = 2.0

EFFECTS = {
    "append_around": "l.append(1)\ny = x + 1\nl.append(2)\next(l)\nl.append(3)\ny = y * 2\nl.append(4)\nreturn y",
    "append_in_arguments": "y = x + 1\next(l.append(1), l.append(2))\nl.append(3)\nreturn y * 2",
    "pop_around": "l.extend([1, 2, 3])\nl.pop()\ny = x + 1\next(l)\nl.pop()\nreturn y * 2",
    "item_stores": "l.append(0)\nl[0] = 1\ny = x + 1\next(l)\nl[0] = 2\nreturn y * 2",
    "print_around": "print('a')\ny = x + 1\nprint('b')\next(y)\nprint('c')\ny = y * 2\nprint('d')\nreturn y",
    "print_tensor": "y = x + 1\nprint(y)\ny = y * 2\nreturn y",
    "print_item": "y = x + 1\nprint(y.sum().item())\ny = y * 2\nreturn y",
    "print_before_error": """
        y = x + 1
        print('a')
        try:
            boom(KeyError)
        except KeyError:
            print('b')
        return y * 2
        """,
    "warn_around": "y = x + 1\nwarnings.warn('first')\next(y)\nwarnings.warn('second')\nreturn y * 2",
    "random_around": "y = x + torch.rand(3)\next(y)\nreturn y * torch.rand(3)",
    "dropout_around": "y = torch.nn.functional.dropout(x, 0.5)\next(y)\nreturn torch.nn.functional.dropout(y, 0.5)",
    "python_random_around": "n = random.random()\ny = x * n\next(y)\nreturn y * random.random()",
    "inplace_around": "x.add_(1)\next(x)\nx.mul_(2)\nreturn x + 1",
    "inplace_twice_same_line": "x.add_(1); ext(x); x.add_(1); ext(x); x.add_(1)\nreturn x * 2",
    "error_after_effects": "l.append(1)\ny = x + 1\next(y)\nl.append(2)\nboom(KeyError, 'late')\nreturn y",
    "error_in_trace_after_effects": "l.append(1)\ny = x + 1\next(y)\nl.append(2)\nraise KeyError(len(l))",
    "attribute_of_global": """
        ext.count = getattr(ext, 'count', 0) + 1
        y = x + 1
        ext(y)
        n = ext.count
        del ext.count
        return y * n
        """,
    "nested_callee_effects": """
        def inner(v):
            l.append('in')
            ext(l)
            l.append('out')
            return v * 2
        l.append('before')
        y = inner(x + 1)
        l.append('after')
        return y - 1
        """,
    "grad_mode_effect": "y = x + 1\ntorch.set_grad_enabled(False)\next(y)\ntorch.set_grad_enabled(True)\nreturn y * 2",
    "iterator_argument": "a = next(it)\ny = x + a\next(y)\nb = next(it)\nreturn y * b",
    "sorted_in_place": "l.extend([3, 1, 2])\nl.sort()\ny = x + 1\next(l)\nl.reverse()\nreturn y * l[0]",
    "set_argument": "s.add(1)\ny = x + 1\next(len(s))\ns.add(2)\nreturn y * len(s)",
    "deleted_item": "l.extend([1, 2])\ndel l[0]\ny = x + 1\next(l)\ndel l[0]\nreturn y * 2",
}
VARIES = ("python_random_around", "print_tensor", "print_around", "print_item", "warn_around", "print_before_error")
breaks.table(
    {n: (r, {"graphs": (1, 5), "settled": 3 if n in VARIES else 2, "breaks": (0, 6)}) for n, r in EFFECTS.items()},
    globals(),
    lambda: (t(3), [], iter([2, 3, 4]), set()),
    "x, l, it, s",
)


@scenario(graphs=(2, 3), settled=3)
def dict_and_global_written():
    STATE["n"] = 0

    def fn(x):
        global TOTAL
        STATE["n"] += 1
        TOTAL = STATE["n"] * 2
        y = x + 1
        ext(STATE["n"], TOTAL)
        STATE["n"] += 1
        TOTAL += 1
        return y * 2

    return Setup(fn, lambda: (t(3),), watch=lambda: (dict(STATE), TOTAL))


@scenario(graphs=2, after_change=(1, 0, 0))
def global_changes_between_calls():
    """A global read only in the rest: the head is not compiled again."""

    def fn(x):
        y = x + 1
        ext(y)
        return y * SCALE

    def put(value):
        global SCALE
        SCALE = value

    changes = [lambda: put(3.0), lambda: put(2.0), lambda: put(3.0)]
    return Setup(fn, lambda: (t(3),), changes=changes, cleanup=lambda: put(2.0))


@scenario(graphs=2, after_change=(1, 0))
def opaque_result_changes_type():
    """The broken call gives an int, then a float: only the rest is compiled again."""
    kind = [int]

    @torch.compiler.disable
    def give():
        return kind[0](3)

    def fn(x):
        y = x + 1
        n = give()
        return y * n

    return Setup(fn, lambda: (t(3),), changes=[lambda: kind.__setitem__(0, float), lambda: kind.__setitem__(0, int)])


@scenario(graphs=2, after_change=(1, 0), share=0.6)
def opaque_result_changes_dtype():
    kind = [torch.float32]

    @torch.compiler.disable
    def give():
        return torch.ones(3, dtype=kind[0])

    def fn(x):
        y = x + 1
        n = give()
        return y * n

    return Setup(fn, lambda: (t(3),), changes=[lambda: kind.__setitem__(0, torch.float64), lambda: kind.__setitem__(0, torch.float32)])


@scenario(graphs=2, after_change=(1, 0), share=0.6)
def opaque_result_changes_shape():
    size = [3]

    @torch.compiler.disable
    def give():
        return torch.ones(size[0])

    def fn(x):
        y = x + 1
        n = give()
        return y.sum() * n

    return Setup(fn, lambda: (t(3),), changes=[lambda: size.__setitem__(0, 4), lambda: size.__setitem__(0, 3)])


@scenario(graphs=2, after_change=(2, 0))
def input_dtype_changes():
    kind = [torch.float32]

    def fn(x):
        y = x + 1
        ext(y)
        return y * 2

    return Setup(fn, lambda: (t(3, dtype=kind[0]),), changes=[lambda: kind.__setitem__(0, torch.float64), lambda: kind.__setitem__(0, torch.float32)])


@scenario(graphs=2, after_change=(None, 0))
def grad_mode_changes():
    def fn(x):
        y = x * 2
        ext(y)
        return y * x

    return Setup(
        fn,
        lambda: (t(3, grad=True),),
        changes=[lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)],
        cleanup=lambda: torch.set_grad_enabled(True),
    )


@scenario(graphs=2, after_change=(1, 0))
def object_attribute_changes():
    class Box:
        def __init__(self):
            self.k = 2

    box = Box()

    def fn(x):
        y = x + 1
        ext(y)
        return y * box.k

    return Setup(fn, lambda: (t(3),), changes=[lambda: setattr(box, "k", 5), lambda: setattr(box, "k", 2)])


@scenario(graphs=2, after_change=(None,))
def function_changes_in_break():
    """The opaque call swaps the function that the rest calls."""
    table = {"f": lambda v: v * 2}

    @torch.compiler.disable
    def swap():
        table["f"] = lambda v: v - 5

    flag = [False]

    def fn(x):
        y = x + 1
        if ext(flag[0]):
            swap()
        return table["f"](y)

    def change():
        flag[0] = True

    return Setup(fn, lambda: (t(3),), changes=[change])


test = breaks.as_test()


# ---- failures ----


@pytest.fixture(autouse=True)
def fresh():
    cdynamo.reset()
    LOG.clear()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


class FailsAt:
    """A backend that fails to compile (or to run) its nth graph."""

    def __init__(self, n, when):
        self.n, self.when, self.seen = n, when, 0

    def __call__(self, gm, inputs):
        self.seen += 1
        number = self.seen
        if number == self.n and self.when == "compile":
            raise RuntimeError("backend fails")

        def run(*args):
            if number == self.n and self.when == "run":
                raise RuntimeError("graph fails")
            return gm.forward(*args)

        return run


def effects(x, log):
    log.append("a")
    y = x + 1
    log.append("b")
    ext(y)
    log.append("c")
    y = y * 2
    log.append("d")
    ext(y)
    log.append("e")
    return y - 3


@pytest.mark.parametrize("n, expected", [(1, []), (2, ["a", "b"]), (3, ["a", "b", "c", "d"])])
def test_backend_fails(n, expected):
    """What happened before the failure happened once; what comes after did not happen."""
    log = []
    with pytest.raises(Exception, match="backend fails"):
        cdynamo.compile(effects, backend=FailsAt(n, "compile"))(t(3), log)
    assert log[: len(expected)] == expected
    assert len(log) == len(set(log))
    assert len(LOG) == n - 1


@pytest.mark.parametrize("n", [1, 2, 3])
def test_backend_fails_suppressed(n):
    """The part whose graph cannot be compiled runs eagerly, once."""
    log, backend = [], FailsAt(n, "compile")
    with cdynamo.config.patch(suppress_errors=True, strict=False):
        call = cdynamo.compile(effects, backend=backend)
        for _ in range(3):
            log.clear()
            LOG.clear()
            result = call(t(3), log)
            assert log == ["a", "b", "c", "d", "e"] and len(LOG) == 2
            assert torch.equal(result, (t(3) + 1) * 2 - 3)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_graph_fails_at_run(n):
    log = []
    with pytest.raises(RuntimeError, match="graph fails"):
        cdynamo.compile(effects, backend=FailsAt(n, "run"))(t(3), log)
    assert len(LOG) == n - 1
    assert log == sorted(set(log))


def test_backend_fails_then_works():
    """A failure is not remembered as a capture."""
    log, backend = [], FailsAt(2, "compile")
    call = cdynamo.compile(effects, backend=backend)
    with pytest.raises(Exception, match="backend fails"):
        call(t(3), log)
    log.clear()
    assert torch.equal(call(t(3), log), (t(3) + 1) * 2 - 3)
    assert log == ["a", "b", "c", "d", "e"]


def test_fullgraph_raises_before_effects():
    log = []
    with pytest.raises(torch._dynamo.exc.Unsupported):
        cdynamo.compile(effects, backend="eager", fullgraph=True)(t(3), log)
    assert log == [] and LOG == []


def test_recompile_limit_in_a_continuation():
    """The rest misses again and again: it runs eagerly from the limit on, with the right answers, and the head is compiled once."""
    backend = CountingBackend()

    def fn(x, n):
        y = x + 1
        n = ext(n)
        return y * n

    with cdynamo.config.patch(recompile_limit=3):
        call = cdynamo.compile(fn, backend=backend)
        for n in range(10):
            assert torch.equal(call(t(3), n), (t(3) + 1) * n)
    assert sum(g == ["add"] for g in backend.graphs) == 1
    assert len(backend.graphs) <= 1 + 3


def test_dynamic_shapes_in_a_continuation():
    """New sizes in every call: the answers are right, captures come to an end."""
    backend = CountingBackend()

    def fn(x):
        y = x + 1
        ext(y)
        return y * 2

    call = cdynamo.compile(fn, backend=backend)
    for n in range(2, 30):
        assert torch.equal(call(t(n)), (t(n) + 1) * 2)
    assert len(backend.graphs) <= 16


def test_logging_order():
    """Log records come in program order, once each."""
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(record.getMessage())

    logger = logging.getLogger("cdynamo_breaks_test")
    logger.addHandler(Keep())
    logger.setLevel(logging.INFO)
    logger.propagate = False

    def fn(x):
        logger.info("one %s", 1)
        y = x + 1
        logger.info("two")
        ext(y)
        logger.info("three")
        return y * 2

    call = cdynamo.compile(fn, backend="eager")
    for _ in range(3):
        records.clear()
        assert torch.equal(call(t(3)), (t(3) + 1) * 2)
        assert records == ["one 1", "two", "three"]


def test_effects_of_an_abandoned_attempt():
    """The trace went on for a while before the instruction that breaks: nothing of it is seen twice."""
    seen = []

    class Loud:
        def __init__(self):
            seen.append("made")

        def __add__(self, other):
            seen.append("added")
            ext(other)
            seen.append("done")
            return other

    def fn(x):
        y = Loud() + (x + 1)
        seen.append("after")
        return y * 2

    call = cdynamo.compile(fn, backend="eager")
    for _ in range(3):
        seen.clear()
        assert torch.equal(call(t(3)), (t(3) + 1) * 2)
        assert seen == ["made", "added", "done", "after"]


def test_reset_in_the_break():
    """Captures thrown away by the broken call."""

    @torch.compiler.disable
    def wipe(v):
        cdynamo.reset()
        return v

    def fn(x):
        y = wipe(x + 1)
        for _ in range(3):
            y = wipe(y * 2)
        return y - 3

    call = cdynamo.compile(fn, backend="eager")
    for _ in range(3):
        assert torch.equal(call(t(3)), (t(3) + 1) * 8 - 3)


def test_recursion_through_the_break():
    """The broken call calls the compiled function again."""
    backend = CountingBackend()

    @torch.compiler.disable
    def again(n, x):
        return call(n - 1, x) if n else x

    def fn(n, x):
        y = x + 1
        z = again(n, y)
        return z * 2

    call = cdynamo.compile(fn, backend=backend)
    assert torch.equal(call(3, t(3)), (t(3) + 1 + 1 + 1 + 1) * 16)


def test_threads():
    """The same broken function in several threads, from the first call on."""
    import threading

    def fn(x, n):
        for _ in range(3):
            x = x + 1
            ext(n)
        return x * 2

    call = cdynamo.compile(fn, backend="eager")
    wrong = []

    def work(n):
        for _ in range(20):
            if not torch.equal(call(t(3, seed=n), n), (t(3, seed=n) + 1 + 1 + 1) * 2):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
