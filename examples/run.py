#!/usr/bin/env python3
"""A small Llama (random weights) compiled by cdynamo with the default backend, inductor; what was captured, beside torch.compile."""

from __future__ import annotations

import os
import pathlib
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402

import cdynamo  # noqa: E402


def make_model() -> tuple[torch.nn.Module, dict[str, Any]]:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        intermediate_size=128, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    return model, {"input_ids": torch.randint(3, 255, (2, 32)), "use_cache": False}


def capture(compile: Callable[..., Any], reset: Callable[[], None], model: Any, inputs: dict[str, Any]) -> tuple[int, int, float]:
    """(graphs, ops, seconds of the best of three captures); the backend runs the graph as it is, so that only the front end is timed."""
    ops: list[int] = []

    def as_it_is(gm: torch.fx.GraphModule, _: Any) -> Any:
        ops.append(sum(node.op.startswith("call") for node in gm.graph.nodes))
        return gm.forward

    times = []
    for _ in range(4):
        reset()
        ops.clear()
        compiled = compile(model, backend=as_it_is)
        started = time.perf_counter()
        compiled(**inputs)
        times.append(time.perf_counter() - started)
    reset()
    return len(ops), sum(ops), min(times[1:])


@torch.no_grad()
def main() -> None:
    import torch._dynamo

    model, inputs = make_model()
    want = model(**inputs).logits
    told = cdynamo.explain(model)(**inputs)
    print(f"{type(model).__name__}, {sum(p.numel() for p in model.parameters()):,} parameters, input {tuple(inputs['input_ids'].shape)}")
    print(f"captured: {told.graph_count} graph(s), {told.op_count} ops, {len(told.out_guards)} guards, {told.graph_break_count} breaks")
    for reason in told.break_reasons:
        print(f"  break: {reason}")

    rows = {
        "torch.compile": capture(torch.compile, torch._dynamo.reset, model, inputs),
        "cdynamo": capture(cdynamo.compile, cdynamo.reset, model, inputs),
    }
    print(f"{'front end':14s} {'graphs':>6s} {'ops':>6s} {'capture':>10s}")
    for name, (graphs, ops, seconds) in rows.items():
        print(f"{name:14s} {graphs:6d} {ops:6d} {seconds * 1e3:7.1f} ms")

    assert rows["cdynamo"][0] >= 1, "nothing was captured"
    compiled = cdynamo.compile(model)
    started = time.perf_counter()
    got = compiled(**inputs).logits
    first = time.perf_counter() - started
    torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(compiled(**inputs).logits, want, atol=1e-4, rtol=1e-4)
    ratio = rows["torch.compile"][2] / rows["cdynamo"][2]
    print(f"inductor: first call {first:.1f} s, values equal eager's (largest difference {(got - want).abs().max():.1e})")
    print(f"cdynamo captured it in {rows['cdynamo'][0]} graph(s), {ratio:.1f}x as fast as torch.compile; values equal.")


if __name__ == "__main__":
    main()
