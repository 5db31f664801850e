"""Graphs of real models (captured here by torch, rebuilt as programs) through our executor, torch.fx form and backends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from graphs import N, meta

from cdynamo import _C
from cdynamo._backends import CompileOptions, compile_graph, resolve
from cdynamo._fx import to_graph_module

transformers = pytest.importorskip("transformers")


def program_of(gm: torch.fx.GraphModule, inputs: list[Any]) -> _C.GraphProgram:
    """The same graph as a program, with metadata from a real run."""
    ids: dict[Any, Any] = {}
    values: list[Any] = []
    nodes: list[Any] = []

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            if n.op == "output":
                return value
            args, kwargs = torch.fx.node.map_arg((tuple(n.args), dict(n.kwargs)), lambda used: ids[used])
            plain = torch.utils._pytree.tree_map(lambda leaf: leaf, (args, kwargs))
            ids[n] = N(len(nodes))
            described = meta(value) if isinstance(value, (torch.Tensor, tuple, list)) else ("constant", value)
            source = n._dynamo_source.name if n.op == "placeholder" else None
            nodes.append((n.op, n.target, _plain(plain[0]), _plain(plain[1]), n.name, described, (("model.py", 1, "forward", None, None),), source))
            values.append(value)
            return value

    Recorder(gm).run(*inputs)
    out = next(n for n in gm.graph.nodes if n.op == "output")
    return _C.GraphProgram(nodes, [ids[n] for n in out.args[0]])


def _plain(tree: Any) -> Any:
    """fx's immutable containers as ordinary ones."""
    if isinstance(tree, dict):
        return {key: _plain(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_plain(item) for item in tree]
    if type(tree) is tuple:
        return tuple(_plain(item) for item in tree)
    if isinstance(tree, slice):
        return slice(_plain(tree.start), _plain(tree.stop), _plain(tree.step))
    return tree


def captured(name: str) -> tuple[_C.GraphProgram, list[Any], torch.fx.GraphModule]:
    torch.manual_seed(0)
    small = dict(vocab_size=64, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=32)
    if name == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**small, num_key_value_heads=1, head_dim=8, pad_token_id=0))
        kwargs = {"use_cache": False}
    elif name == "resnet":
        model = transformers.ResNetModel(transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]))
        kwargs = {}
    else:
        model = transformers.BertModel(transformers.BertConfig(**small, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
        kwargs = {}
    data = {"pixel_values": torch.randn(2, 3, 16, 16)} if name == "resnet" else {"input_ids": torch.randint(1, 63, (2, 8))}
    kept: list[Any] = []

    def keep(gm, inputs):
        kept.append((gm, list(inputs)))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(model, backend=keep, fullgraph=True)(**data, **kwargs)
    torch._dynamo.reset()
    gm, inputs = kept[0]
    return program_of(gm, inputs), inputs, gm


@pytest.fixture(scope="module", params=["bert", "llama", "resnet"])
def model(request):
    return captured(request.param)


def loss_grads(outputs, inputs):
    wanted = [i for i in inputs if isinstance(i, torch.Tensor) and i.requires_grad]
    return torch.autograd.grad(sum(o.float().square().sum() for o in outputs if o.requires_grad), wanted, allow_unused=True)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_values_and_gradients(model, backend):
    program, inputs, gm = model
    tolerance = {} if backend != "inductor" else dict(atol=1e-4, rtol=1e-3)
    compiled = compile_graph(program, inputs, CompileOptions(resolve(backend)))
    got, want = compiled(*inputs), gm(*inputs)
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b, **tolerance)
    for a, b in zip(loss_grads(got, inputs), loss_grads(want, inputs)):
        if b is not None:
            torch.testing.assert_close(a, b, **tolerance)


def test_same_fx_graph(model):
    program, inputs, gm = model
    ours = to_graph_module(program, inputs=inputs)
    ours.graph.lint()
    assert [n.target for n in ours.graph.nodes] == [n.target for n in gm.graph.nodes]
    assert [n.name for n in ours.graph.nodes if n.op == "placeholder"] == [n.name for n in gm.graph.nodes if n.op == "placeholder"]
    for a, b in zip(ours.graph.nodes, gm.graph.nodes):
        example = b.meta.get("example_value")
        if isinstance(example, torch.Tensor):
            mine = a.meta["example_value"]
            assert (mine.shape, mine.dtype, mine.requires_grad) == (example.shape, example.dtype, example.requires_grad), a
            if b.op == "placeholder":
                assert a.type is b.type and isinstance(mine, torch.nn.Parameter) == isinstance(example, torch.nn.Parameter)
                assert a.meta["tensor_dict"] == b.meta["tensor_dict"], a
    for a, b in zip(ours(*inputs), program(*inputs)):
        assert torch.equal(a, b)
