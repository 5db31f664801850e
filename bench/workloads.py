"""What is measured, on one front end, in this process. Each measure returns a number where less is better."""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

STARTED = time.perf_counter()

import torch  # noqa: E402

AFTER_TORCH = time.perf_counter()


def front_end(name: str) -> tuple[Callable[..., Any], Callable[[], None]]:
    """(compile, reset)"""
    if name == "torch":

        def reset() -> None:
            import torch._dynamo

            torch._dynamo.reset()

        return torch.compile, reset
    module = importlib.import_module(name)
    return module.compile, module.reset


def graphs_and_ops(front: str) -> tuple[int, int]:
    """How many graphs and calls the front end says it has captured so far. A frame that ran eagerly instead is not among them."""
    if front == "torch":
        from torch._dynamo.utils import counters
    else:
        counters = importlib.import_module(front).counters
    return counters["stats"]["unique_graphs"], counters["stats"]["calls_captured"]


class Captured:
    """Checks that a block captured exactly `graphs` graphs with at least `ops` calls in all: else what was timed is not a capture."""

    def __init__(self, front: str, graphs: int, ops: int) -> None:
        self.front, self.graphs, self.ops = front, graphs, ops

    def __enter__(self) -> None:
        # Not before the first capture: reading torch's counters imports torch._dynamo, which is part of what is timed.
        self.before = graphs_and_ops(self.front) if self.front != "torch" or "torch._dynamo" in sys.modules else (0, 0)

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            after = graphs_and_ops(self.front)
            graphs, ops = after[0] - self.before[0], after[1] - self.before[1]
            assert graphs == self.graphs and ops >= self.ops, f"{self.front} captured {graphs} graphs with {ops} ops"


def plain_bytecodes(x: torch.Tensor) -> torch.Tensor:
    a = 1
    for i in range(1250):  # 8 bytecodes each
        a = (a + i) & 1023
    return x + a


def small(a: int) -> int:
    return a + 1


def inlined_calls(x: torch.Tensor) -> torch.Tensor:
    a = 0
    for _ in range(1000):
        a = small(a)
    return x + a


def chain(length: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def run(x: torch.Tensor) -> torch.Tensor:
        for _ in range(length):
            x = torch.sin(x)
        return x

    return run


class Block(torch.nn.Module):
    """Attention and a feed-forward part, each with its norm, as in a transformer."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.act, self.drop = torch.nn.GELU(), torch.nn.Dropout(0.0)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.drop(self.attend(self.norm1(x)))
        return x + self.drop(self.down(self.act(self.up(self.norm2(x)))))


class Blocks(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Block() for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Stack(torch.nn.Module):
    """A hundred small blocks."""

    def __init__(self, count: int = 100) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()) for _ in range(count)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x)


def capture_seconds(front: str, function: Any, x: torch.Tensor, rounds: int, ops: int) -> float:
    """The first call after a reset, best of `rounds`; the very first, which also imports, is not counted."""
    compile, reset = front_end(front)
    want = function(x)
    times = []
    for _ in range(rounds + 1):
        reset()
        gc.collect()
        compiled = compile(function, backend="eager", fullgraph=True)
        with Captured(front, 1, ops):
            started = time.perf_counter()
            got = compiled(x)
            times.append(time.perf_counter() - started)
        assert torch.equal(got, want), "wrong value"
    return min(times[1:])


def call_seconds(front: str, function: Any, x: torch.Tensor) -> float:
    """One call of the compiled function, with a backend that returns a ready answer."""
    compile, reset = front_end(front)
    reset()

    calls = []

    def no_op(gm: Any, inputs: Any) -> Any:
        answer = tuple(gm(*inputs))

        def run(*_: Any) -> Any:
            return answer

        def counted(*_: Any) -> Any:
            calls.append(1)
            return answer

        return counted if counting else run

    for counting in (True, False):  # noqa: B007  (no_op reads it)
        reset()
        compiled = compile(function, backend=no_op, fullgraph=True)
        with Captured(front, 1, 1):
            assert torch.equal(compiled(x), function(x))
        compiled(x)
    assert len(calls) == 2, "the compiled code does not call the graph"
    best = float("inf")
    for _ in range(15):
        count = 300
        started = time.perf_counter()
        for _ in range(count):
            compiled(x)
        best = min(best, (time.perf_counter() - started) / count)
    return best


def first_result_seconds(front: str) -> float:
    """From `import torch` done to the first result of a compiled function; the front end's own import is part of it."""
    x = torch.ones(4)
    started = time.perf_counter()
    compile, _ = front_end(front)
    got = compile(lambda x: torch.sin(x) + 1, backend="eager", fullgraph=True)(x)
    spent = time.perf_counter() - started
    assert graphs_and_ops(front) == (1, 2)
    assert torch.equal(got, torch.sin(x) + 1)
    return spent


def second_function_seconds(front: str) -> float:
    """The first call of a new small function when others have been compiled before."""
    compile, _ = front_end(front)
    x = torch.ones(4)
    times = []
    for i in range(8):
        scope: dict[str, Any] = {"torch": torch}
        exec(f"def f(x):\n    y = torch.sin(x) + {i}\n    return y * 2", scope)
        compiled = compile(scope["f"], backend="eager", fullgraph=True)
        with Captured(front, 1, 3):
            started = time.perf_counter()
            got = compiled(x)
            times.append(time.perf_counter() - started)
        assert torch.equal(got, (torch.sin(x) + i) * 2)
    return min(times[1:])


def _memory(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key))


def peak_growth_kb(front: str) -> float:
    """How far the resident memory rises above where it was, while 64 blocks are captured."""
    compile, _ = front_end(front)
    x = torch.randn(2, 8, 16)
    small_one, model = Blocks(1), Blocks(64)
    compile(small_one, backend="eager")(x)
    model(x)
    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again from here
    before = _memory("VmRSS")
    with Captured(front, 1, 64 * 10):
        compile(model, backend="eager", fullgraph=True)(x)
    return max(1.0, _memory("VmHWM") - before)


def measure(name: str, front: str) -> float:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(4)
    with torch.no_grad():
        if name == "bytecodes":
            return capture_seconds(front, plain_bytecodes, x, 5, 1)
        if name == "inlined":
            return capture_seconds(front, inlined_calls, x, 5, 1)
        if name == "blocks":
            return capture_seconds(front, Blocks(64), torch.randn(2, 8, 16), 3, 64 * 10)
        if name == "chain200":
            return capture_seconds(front, chain(200), x, 5, 200)
        if name == "chain5000":
            return capture_seconds(front, chain(5000), x, 2, 5000)
        if name == "call":
            return call_seconds(front, lambda x: x + 1, x)
        if name == "module_call":
            return call_seconds(front, Stack(), x)
        if name == "first":
            return first_result_seconds(front)
        if name == "second":
            return second_function_seconds(front)
        if name == "memory":
            return peak_growth_kb(front)
    raise ValueError(f"unknown measure {name}")
