"""Backends on graphs made by hand: values, gradients, and what a backend is given."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
import torch
from graphs import two_layers
from torch._guards import CompileContext, TracingContext, detect_fake_mode

from cdynamo._backends import CompileOptions, compile_graph, resolve


def setup_graph():
    torch.manual_seed(0)
    first, second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)
    x = torch.randn(5, 4, requires_grad=True)
    program, inputs = two_layers(x, first, second)
    return program, inputs


def eager_run(inputs):
    w1, b1, x, w2, b2 = inputs
    hidden = torch.nn.functional.relu(torch.nn.functional.linear(x, w1, b1))
    return torch.nn.functional.linear(hidden, w2, b2).sum(dim=1), hidden


def grads(outputs, inputs):
    return torch.autograd.grad(sum((out * out).sum() for out in outputs), inputs)


@pytest.mark.parametrize("name", ["eager", "aot_eager", "inductor", "aot_eager_decomp_partition", "eager_noexcept", "eager_debug", "ts"])
def test_forward_and_backward(name):
    program, inputs = setup_graph()
    compiled = compile_graph(program, inputs, CompileOptions(resolve(name)))
    got, want = compiled(*inputs), eager_run(inputs)
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b)
    for a, b in zip(grads(got, inputs), grads(want, inputs)):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        for a, b in zip(compiled(*inputs), want):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
def test_under_no_grad(name):
    program, inputs = setup_graph()
    with torch.no_grad():
        compiled = compile_graph(program, inputs, CompileOptions(resolve(name)))
        for a, b in zip(compiled(*inputs), eager_run(inputs)):
            torch.testing.assert_close(a, b)


def test_inductor_mode_and_options():
    program, inputs = setup_graph()
    for backend in (resolve("inductor", mode="max-autotune-no-cudagraphs"), resolve("inductor", options={"epilogue_fusion": False})):
        compiled = compile_graph(program, inputs, CompileOptions(backend))
        torch.testing.assert_close(compiled(*inputs)[0], eager_run(inputs)[0])
    with pytest.raises(RuntimeError, match="Unexpected optimization option nope"):
        resolve("inductor", options={"nope": 1})


def test_what_a_backend_gets():
    program, inputs = setup_graph()
    seen = {}

    def backend(gm, example_inputs):
        assert isinstance(gm, torch.fx.GraphModule)
        assert all(a is b for a, b in zip(example_inputs, inputs))
        mode = TracingContext.get().fake_mode
        assert detect_fake_mode(example_inputs) is mode
        assert str(CompileContext.current_compile_id()) == str(gm.meta["dynamo_compile_id"])
        assert gm._param_name_to_source == {} and torch.compiler.is_compiling()
        for node in gm.graph.nodes:
            if node.op == "placeholder":
                assert node.meta["example_value"].fake_mode is mode
                assert node._dynamo_source.name == program.inputs[len(seen)]
                seen[node.target] = node
            elif node.op != "output":
                assert 'File "model.py", line 3, in forward' in node.meta["stack_trace"]
                assert node.meta["source_fn_stack"][-1][0] == node.name
        first = next(node for node in gm.graph.nodes if node.name == "hidden")
        assert list(first.meta["nn_module_stack"].values()) == [("L['self'].first", torch.nn.Linear)]
        assert gm.meta["dynamo_flat_name_to_original_fqn"]["L__self___first_weight"] == "first.weight"
        return gm

    compiled = compile_graph(program, inputs, CompileOptions(resolve(backend)))
    assert compiled is program  # given back unchanged: no torch.fx on the way
    assert list(seen) == [
        "L_self_modules_first_parameters_weight_",
        "L_self_modules_first_parameters_bias_",
        "L_x_",
        "L_self_modules_second_parameters_weight_",
        "L_self_modules_second_parameters_bias_",
    ]
    assert seen["L_x_"].name == "l_x_"
    weight = seen["L_self_modules_first_parameters_weight_"]
    assert isinstance(weight.meta["example_value"], torch.nn.Parameter) and weight.meta["example_value"].requires_grad
    assert weight.meta["tensor_dict"] == {"_dynamo_static_input_type": "unguarded"}
    assert TracingContext.try_get() is None and not torch.compiler.is_compiling()


def test_a_changed_graph_is_what_runs():
    program, inputs = setup_graph()

    def backend(gm, example_inputs):
        for node in gm.graph.nodes:
            if node.target is torch.nn.functional.relu:
                node.target = torch.nn.functional.silu
        before = gm.forward(*example_inputs)[1]
        gm.recompile()
        after = gm.forward(*example_inputs)[1]
        assert not torch.equal(before, after)
        return gm.forward

    compiled = compile_graph(program, inputs, CompileOptions(resolve(backend)))
    x, w1, b1 = inputs[2], inputs[0], inputs[1]
    torch.testing.assert_close(compiled(*inputs)[1], torch.nn.functional.silu(torch.nn.functional.linear(x, w1, b1)))


def test_failures():
    from torch._dynamo.exc import BackendCompilerFailed, InvalidBackend

    program, inputs = setup_graph()

    def broken(gm, example_inputs):
        raise ValueError("no luck")

    with pytest.raises(BackendCompilerFailed, match="backend='broken' raised:\nValueError: no luck") as info:
        compile_graph(program, inputs, CompileOptions(resolve(broken)))
    assert isinstance(info.value.__cause__, ValueError) and info.value.inner_exception is info.value.__cause__
    with pytest.raises(BackendCompilerFailed, match="compiler_fn did not return callable"):
        compile_graph(program, inputs, CompileOptions(resolve(lambda gm, example_inputs: None)))

    def out_of_range(gm, example_inputs):
        raise IndexError("dim")

    with pytest.raises(IndexError, match="dim"):
        compile_graph(program, inputs, CompileOptions(resolve(out_of_range)))
    with pytest.raises(InvalidBackend, match=r"'nope'.*aot_eager.*inductor"):
        resolve("nope")
    with pytest.raises(TypeError, match="backend must be a name or a callable"):
        resolve(3)


def test_views_that_overlap():
    from graphs import Maker

    base = torch.zeros(8)
    views = [base[:4], base[2:6]]
    made = Maker()
    first, second = made.input(views[0], "L['a']"), made.input(views[1], "L['b']")
    program = made.program(made.call(torch.add, made.method("add_", first, 1), second))
    base.zero_()
    compiled = compile_graph(program, views, CompileOptions(resolve("aot_eager")))
    assert compiled(*views)[0].tolist() == [2.0, 2.0, 1.0, 1.0] and base.tolist() == [1.0] * 4 + [0.0] * 4


def test_keywords_reach_the_backend():
    got = {}

    def backend(gm, example_inputs, **keywords):
        got.update(keywords)
        return gm.forward

    program, inputs = setup_graph()
    compile_graph(program, inputs, CompileOptions(resolve(backend, mode="fast", options={"a": 1})))
    assert got == {"mode": "fast", "options": {"a": 1}}


def test_every_name_resolves():
    from torch._dynamo import list_backends

    for name in list_backends(None):
        assert callable(resolve(name)), name


def test_eager_and_plain_callables_import_no_dynamo():
    script = """
        import sys
        sys.path.insert(0, "tests/front")
        import stand_in
        import torch
        from graphs import two_layers
        from cdynamo._backends import CompileOptions, compile_graph, resolve
        program, inputs = two_layers(torch.randn(5, 4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
        assert compile_graph(program, inputs, CompileOptions(resolve("eager"))) is program
        def count(gm, example_inputs):
            print(sum(node.op.startswith("call") for node in gm.graph.nodes))
            return gm.forward
        compile_graph(program, inputs, CompileOptions(resolve(count)))(*inputs)
        assert not {"torch._dynamo", "sympy", "torch._inductor"} & set(sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4\n"


def test_inductor_caches_hit_in_another_process(tmp_path):
    script = """
        import sys
        sys.path.insert(0, "tests/front")
        import stand_in
        import torch
        from graphs import two_layers
        from torch._dynamo.utils import counters
        from cdynamo._backends import CompileOptions, compile_graph, resolve
        torch.manual_seed(0)
        program, inputs = two_layers(torch.randn(5, 4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))
        compile_graph(program, inputs, CompileOptions(resolve("inductor")))(*inputs)[0].sum().backward()  # only then it is stored
        print(dict(counters["aot_autograd"]))
    """
    outputs = []
    for _ in range(2):
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, env=environment)
        assert "Failed to pickle" not in done.stderr, done.stderr
        outputs.append(done.stdout)
    assert "autograd_cache_miss" in outputs[0] and "autograd_cache_hit" in outputs[1], outputs
