"""GraphProgram: runs, frees, describes; and its torch.fx form."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import sys
import threading
import traceback
import weakref

import pytest
import torch
from graphs import Maker, N, two_layers

from cdynamo import _C
from cdynamo._fx import LazyGraphModule, placeholder_target, to_graph_module


def sample():
    x = torch.arange(6.0).reshape(2, 3)
    made = Maker()
    at = made.input(x, "L['x']")
    y = made.call(torch.sin, at, name="y")
    z = made.method("add", y, at, alpha=2)
    both = made.call(torch.cat, [y, z], dim=1)
    picked = made.call(operator.getitem, both, (slice(None), slice(0, None, 2)), name="max")
    top = made.call(torch.max, picked, dim=1)
    values = made.call(operator.getitem, top, 0)
    return made.program(picked, y, values), x


def plain(x):
    y = torch.sin(x)
    both = torch.cat([y, y.add(x, alpha=2)], dim=1)[:, ::2]
    return both, y, torch.max(both, dim=1)[0]


def same(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert torch.equal(a, b)


def test_runs_as_the_function_did():
    program, x = sample()
    same(program(x), plain(x))
    same(program(-x), plain(-x))
    assert program.inputs == ("L['x']",) and program.calls == 6 and len(program) == 7


def test_containers_of_every_kind():
    seen = []

    def target(*args, **kwargs):
        seen.append((args, kwargs))
        return args[0]

    nodes = [
        ("placeholder", "", (), {}, "", None, (), "L['x']"),
        (
            "call_function",
            target,
            (N(0), [N(0), (N(0), 1)], {"k": N(0), "l": [2]}, slice(N(0), None, 3)),
            {"key": (N(0),), "fixed": (1, (2,))},
            "",
            None,
            (),
            None,
        ),
        ("call_function", target, (N(1), torch.return_types.max((N(1), N(1))), torch.Size([1, 2])), {}, "", None, (), None),
    ]
    program = _C.GraphProgram(nodes, [1, 2, 1, 0])
    assert program("a") == ("a", "a", "a", "a")
    assert seen[0] == (("a", ["a", ("a", 1)], {"k": "a", "l": [2]}, slice("a", None, 3)), {"key": ("a",), "fixed": (1, (2,))})
    assert type(seen[1][0][2]) is torch.Size
    program("b")
    assert seen[2][0][1] is not seen[0][0][1], "lists are made anew for each call"
    assert seen[2][1]["fixed"] is seen[0][1]["fixed"], "constant tuples are not"
    assert program.describe()[1][2][0] == N(0) and type(program.describe()[1][2][0]) is N


def test_values_die_after_their_last_use():
    alive = []

    class Value:
        pass

    refs = []

    def make(*_):
        value = Value()
        refs.append(weakref.ref(value))
        alive.append(sum(ref() is not None for ref in refs))
        return value

    nodes = [("placeholder", "", (), {}, "", None, (), "L['x']")]
    nodes += [("call_function", make, (N(i),), {}, "", None, (), None) for i in range(20)]
    _C.GraphProgram(nodes, [20])(1)
    assert max(alive) == 2


def test_keeps_nothing_alive():
    x = torch.randn(3, requires_grad=True)
    made = Maker()
    program = made.program(made.call(torch.sin, made.input(x, "L['x']")))
    made.values.clear()
    ref = weakref.ref(x)
    gm = to_graph_module(program, inputs=[x])
    gm.graph.lint()
    del x
    gc.collect()
    assert ref() is None


def test_no_leaks():
    program, x = sample()
    program(x)

    def failing(_):
        raise ValueError

    bad = _C.GraphProgram([("placeholder", "", (), {}, "", None, (), "x"), ("call_function", failing, ([N(0)],), {}, "", None, (), None)], [1])

    def once():
        for _ in range(50):
            program(x)
            program.describe()
            with pytest.raises(ValueError):
                bad(x)
            to_graph_module(program).graph.lint()
            _C.GraphProgram(program.describe(), program.outputs)(x)
        gc.collect()

    once()
    before = sys.getrefcount(torch.sin), sys.getrefcount(x), len(gc.get_objects())
    once()
    after = sys.getrefcount(torch.sin), sys.getrefcount(x), len(gc.get_objects())
    assert after[0] <= before[0] + 2 and after[1] == before[1] and after[2] <= before[2] + 200


def test_cycles_are_collected():
    holder = []
    program = _C.GraphProgram([("call_function", holder.append, (holder,), {}, "", None, (), None)], [0])
    holder.append(program)
    ref = weakref.ref(program)
    del program, holder
    gc.collect()
    assert ref() is None


def test_failure_names_the_users_lines():
    stack = ((__file__, 10, "outer", None, None), (__file__, 20, "inner", None, None))
    program = _C.GraphProgram(
        [("placeholder", "", (), {}, "", None, (), "L['x']"), ("call_function", torch.cat, (N(0),), {}, "", None, stack, None)], [1]
    )
    with pytest.raises(TypeError) as info:
        program(torch.ones(2))
    entries = [(entry.lineno, entry.name) for entry in traceback.extract_tb(info.value.__traceback__)[1:]]
    assert entries == [(10, "outer"), (20, "inner")]


def test_refuses_what_is_no_program():
    program, x = sample()
    with pytest.raises(TypeError, match="takes 1 inputs, 2 were given"):
        program(x, x)
    with pytest.raises(TypeError, match="positional inputs only"):
        program(x=x)
    for nodes, error in [
        ([3], TypeError),
        ([("nonsense", "", (), {}, "", None, (), None)], ValueError),
        ([("call_function", 3, (), {}, "", None, (), None)], TypeError),
        ([("call_function", len, (N(5),), {}, "", None, (), None)], IndexError),
        ([("call_method", "x", (), {}, "", None, (), None)], ValueError),
        ([("placeholder", "", (), {}, "", ("tensor", 1), (), None)], TypeError),
    ]:
        with pytest.raises(error):
            _C.GraphProgram(nodes, [])
    with pytest.raises(IndexError):
        _C.GraphProgram([], [0])


def test_threads_share_a_program():
    program, x = sample()
    want, wrong = plain(x), []

    def work():
        for _ in range(200):
            if not all(torch.equal(a, b) for a, b in zip(program(x), want)):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fx_form():
    program, x = sample()
    gm = to_graph_module(program)
    assert isinstance(gm, torch.fx.GraphModule) and "_graph" not in gm.__dict__
    same(gm(x), plain(x))
    assert "_graph" not in gm.__dict__, "a call does not build the fx graph"
    assert [node.name for node in gm.graph.nodes] == ["l_x_", "y", "add", "cat", "max_1", "max_2", "getitem", "output"]
    gm.graph.lint()
    assert "torch.cat([y, add], dim = 1)" in gm.code
    same(gm(x), plain(x))
    same(torch.fx.Interpreter(gm).run(x), plain(x))
    assert "l_x_ = L_x_" in gm.print_readable(print_output=False)
    assert gm.graph.find_nodes(op="call_function", target=torch.sin)[0].name == "y"


@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy, lambda gm: pickle.loads(pickle.dumps(gm))])
@pytest.mark.parametrize("touched", [False, True])
def test_copies(how, touched):
    program, x = sample()
    gm = to_graph_module(program)
    if touched:
        gm.recompile()
    copied = how(gm)
    assert isinstance(copied, torch.fx.GraphModule)
    same(copied(x), plain(x))
    same(gm(x), plain(x))


def test_editing_the_graph():
    program, x = sample()
    gm = to_graph_module(program)
    for node in gm.graph.nodes:
        if node.target is torch.sin:
            with gm.graph.inserting_after(node):
                new = gm.graph.call_function(torch.cos, node.args)
            node.replace_all_uses_with(new)
            gm.graph.erase_node(node)
    same(gm(x)[1:2], [torch.sin(x)])
    gm.recompile()
    same(gm(x)[1:2], [torch.cos(x)])
    other = to_graph_module(program)
    other.graph = gm.graph
    same(other(x)[1:2], [torch.cos(x)])
    same(to_graph_module(program)(x), plain(x))


def test_after_recompile_it_is_an_ordinary_module():
    program, _ = sample()
    gm = to_graph_module(program)
    plain_gm = torch.fx.GraphModule(torch.nn.Module(), gm.graph)
    gm.recompile()
    assert set(gm.__dict__) - set(plain_gm.__dict__) == {"_param_name_to_source", "_source_to_user_stacks"}
    gm.recompile()
    assert "example_value" in next(iter(gm.graph.nodes)).meta


def test_fx_tools_take_it():
    program, x = sample()
    same(torch.fx.symbolic_trace(to_graph_module(program))(x), plain(x))
    same(torch.fx.Transformer(to_graph_module(program)).transform()(x), plain(x))
    gm = to_graph_module(program)
    forward = gm.forward
    assert type(gm).__name__ == "GraphModule" and "GraphModule()" in str(gm) and "torch.cat" in str(gm)
    same(forward(x), plain(x))
    with pytest.raises(TypeError):
        gm(x, x)
    outer = torch.fx.GraphModule({"inner": to_graph_module(program)}, torch.fx.Graph())
    outer.graph.output((outer.graph.create_node("call_module", "inner", (outer.graph.placeholder("x"),)),))
    outer.add_module("inner", to_graph_module(program))
    outer.recompile()
    same(outer(x)[0], plain(x))


def test_meta_reads_like_a_dict():
    program, _ = sample()
    node = list(to_graph_module(program).graph.nodes)[1]
    node.meta["mine"] = 1
    assert {"mine", "example_value", "stack_trace", "source_fn_stack"} <= set({**node.meta})
    assert dict(node.meta) == node.meta.copy() and "example_value" in node.meta and len(node.meta) == 4
    assert node.meta["example_value"].shape == (2, 3) and node.meta.get("nothing") is None
    assert copy.copy(node.meta)["mine"] == 1


def test_examples_have_the_described_layout():
    made = Maker()
    x = torch.randn(4, 6, requires_grad=True)
    at = made.input(x, "L['x']")
    turned = made.method("t", at)
    part = made.call(operator.getitem, turned, (slice(1, None), 2))
    pair = made.call(torch.split, at, 2)
    named = made.call(torch.max, at, 0)
    program = made.program(part)
    for node, value in zip(to_graph_module(program).graph.nodes, made.values):
        fake = node.meta["example_value"]
        fakes, values = (fake, value) if isinstance(value, tuple) else ([fake], [value])
        assert type(fake) is type(value) or not isinstance(value, tuple)
        for a, b in zip(fakes, values):
            assert (a.shape, a.stride(), a.dtype, a.requires_grad) == (b.shape, b.stride(), b.dtype, b.requires_grad)
            assert a.storage_offset() == b.storage_offset()
    assert int(pair) and int(named)


def test_names():
    assert placeholder_target("L['x']") == "L_x_"
    assert placeholder_target("L['self']._modules['lin']._parameters['weight']") == "L_self_modules_lin_parameters_weight_"
    assert placeholder_target("G['w'][3]") == "G_w_3_"
    made = Maker()
    one = made.input(torch.ones(1), "L['x']")
    two = made.input(torch.ones(1), "L['_x_']")
    out = made.call(torch.add, one, two, name="l_x_")
    names = [node.name for node in to_graph_module(made.program(out)).graph.nodes]
    assert len(set(names)) == len(names)


def test_sub_graph_attributes():
    inner, x = sample()
    nodes = [
        ("placeholder", "", (), {}, "", None, (), "L['x']"),
        ("get_attr", "body_0", (inner,), {}, "", None, (), None),
        ("call_function", lambda body, x: body(x)[1], (N(1), N(0)), {}, "", None, (), None),
    ]
    program = _C.GraphProgram(nodes, [2])
    same(program(x), [plain(x)[1]])
    gm = to_graph_module(program)
    gm.graph.lint()
    assert isinstance(gm.body_0, LazyGraphModule)
    gm.recompile()
    same(gm(x), [plain(x)[1]])


def test_two_layers_is_what_it_says():
    first, second, x = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3), torch.randn(5, 4)
    program, inputs = two_layers(x, first, second)
    torch.testing.assert_close(program(*inputs)[0], second(torch.relu(first(x))).sum(dim=1))
