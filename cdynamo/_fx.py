"""Export of a captured graph to torch.fx, and a GraphModule that puts it off until somebody looks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch._guards import CompileId
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.node import Node

from ._higher_order import fx_target
from ._node_meta import ExampleMaker, NodeMeta, StackTexts, node_items, number_items
from ._tracing import BackendContext, GraphSource

if TYPE_CHECKING:
    from torch.fx.graph import PythonCode

    from ._C import GraphProgram

_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9]+")
_FQN = re.compile(r"^L\['[^']*'\]((?:\._modules\['[^']*'\])*)\._(?:parameters|buffers)\['([^']*)'\]$")
_MODULE_KEY = re.compile(r"\._modules\['([^']*)'\]")


def placeholder_target(source: str) -> str:
    """torch._dynamo's name for a graph input: L['x'] is L_x_."""
    return _OTHER_CHARACTERS.sub("_", source)


class LazyGraphModule(_LazyGraphModule):
    """A GraphModule that runs the captured program itself, and builds its fx graph when it is first touched.

    As with any GraphModule, changing the graph changes what runs only after `recompile()`. The base is torch's own lazy
    module, since torch.fx asks those to generate their code (`force_recompile`) before it retraces them.
    """

    __jit_unused_properties__ = ["graph", "_boxed_call", "code"]

    def __new__(cls, *args: Any, **kwargs: Any) -> LazyGraphModule:
        # The base makes a class for each instance, for the generated forward; here recompile() does it.
        return torch.nn.Module.__new__(cls)

    def __init__(self, program: GraphProgram, context: BackendContext, compile_id: CompileId, inputs: Sequence[Any] = ()) -> None:
        torch.nn.Module.__init__(self)
        # Only which inputs are parameters and which have a fixed address (mark_static_address) is kept, never an input.
        kinds = [torch.nn.Parameter if isinstance(x, torch.nn.Parameter) else type(x) for x in inputs]
        self.__dict__.update(
            _program=program,
            _context=context,
            _input_types=kinds,
            _fixed_inputs={i: x._dynamo_static_input_type for i, x in enumerate(inputs) if hasattr(x, "_dynamo_static_input_type")},
            forward=program,
            training=True,
            meta=_module_meta(program, compile_id),
            shape_env=None,
            _tracer_cls=None,
            _tracer_extras={},
            _replace_hooks=[],
            _create_node_hooks=[],
            _erase_node_hooks=[],
            _deepcopy_hooks=[],
            _param_name_to_source={},
            _source_to_user_stacks={},
        )

    def __getattr__(self, name: str) -> Any:
        # Reached only for what the instance does not have yet.
        if name == "_graph":
            return self._build()
        if name in ("_code", "_lineno_map", "_prologue_start") and "_program" in self.__dict__:
            self.recompile()
            return self.__dict__[name]
        return super().__getattr__(name)

    def _build(self) -> fx.Graph:
        graph = _build_graph(self, self._program, self._context, self._input_types, self._fixed_inputs)
        self.__dict__["_graph"] = graph
        return graph

    def recompile(self) -> PythonCode:  # type: ignore[override]
        """Generates the code of `graph` and runs that from now on."""
        if type(self) is LazyGraphModule:
            own = type("GraphModuleImpl", (LazyGraphModule,), {"__module__": fx.GraphModule.__module__})
            own.__name__ = "GraphModule"
            self.__class__ = own
        self.graph  # noqa: B018  (built, if it was not)
        # From here on nothing tells it from an ordinary GraphModule; torch's compile caches hash all of __dict__.
        for name in ("forward", "_program", "_context", "_input_types", "_fixed_inputs"):
            self.__dict__.pop(name, None)
        return fx.GraphModule.recompile(self)

    def _needs_recompile(self) -> bool:  # type: ignore[override]
        return "forward" in self.__dict__

    def _real_recompile(self) -> PythonCode:
        return self.recompile()

    def is_pristine(self) -> bool:
        """Whether a call of this module is nothing but a run of the program."""
        state = self.__dict__
        hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
        return "_program" in state and state.get("forward") is state["_program"] and not any(state[name] for name in hooks)

    def fill_meta(self) -> None:
        """Makes all of node.meta now."""
        for node in self.graph.nodes:
            if isinstance(node.meta, NodeMeta):
                node.meta._now()

    def _plain(self) -> fx.GraphModule:
        """The same as an ordinary GraphModule."""
        plain = fx.GraphModule(self, self.graph)
        self.graph.owning_module = self
        plain.meta.update(self.meta)
        plain.training = self.training
        for name in ("_param_name_to_source", "_source_to_user_stacks"):
            setattr(plain, name, getattr(self, name))
        return plain

    def __deepcopy__(self, memo: dict[int, Any]) -> fx.GraphModule:
        import copy

        copied = copy.deepcopy(self._plain(), memo)
        sources = {node.name: node._dynamo_source for node in self.graph.nodes if hasattr(node, "_dynamo_source")}
        for node in copied.graph.nodes:
            if node.name in sources:
                node._dynamo_source = sources[node.name]
        memo[id(self)] = copied
        return copied

    def __copy__(self) -> fx.GraphModule:
        return self._plain()

    def __reduce__(self) -> Any:
        return self._plain().__reduce__()

    def __reduce_package__(self, exporter: Any) -> Any:
        return self._plain().__reduce_package__(exporter)


LazyGraphModule.__module__ = fx.GraphModule.__module__
LazyGraphModule.__name__ = "GraphModule"


def to_graph_module(
    program: GraphProgram, context: BackendContext | None = None, compile_id: CompileId | None = None, inputs: Sequence[Any] = ()
) -> LazyGraphModule:
    """The captured graph as torch.fx. `inputs` are examples for the placeholders; none of them is kept alive."""
    if context is None:
        context = BackendContext((), ())
    if compile_id is None:
        compile_id = CompileId(frame_id=0, frame_compile_id=0)
    return LazyGraphModule(program, context, compile_id, inputs)


def _module_meta(program: GraphProgram, compile_id: CompileId) -> dict[str, Any]:
    names = {}
    for source in program.inputs:
        match = _FQN.match(source)
        if match is not None:
            path = [*_MODULE_KEY.findall(match.group(1)), match.group(2)]
            local = source[3 : source.index("']")]
            names["_".join([f"L__{local}__", *path])] = ".".join(path)
    return {
        "dynamo_flat_name_to_original_fqn": names,
        "dynamo_compile_id": compile_id,
        "backend_id": f"__compiled_fn_{compile_id.frame_id}_{compile_id.frame_compile_id}",
    }


def _build_graph(
    owner: LazyGraphModule, program: GraphProgram, context: BackendContext, input_types: Sequence[type], fixed_inputs: dict[int, str]
) -> fx.Graph:
    """One pass over the program. Nodes are made directly: Graph.create_node spends most of its time on checks that hold here."""
    graph = fx.Graph(owner)
    namespace = graph._graph_namespace
    create_name, names_of, table, prepend = namespace.create_name, namespace._obj_to_name, graph._find_nodes_lookup_table.table, graph._root.prepend
    set_attribute = object.__setattr__  # Node's own does more, for names and targets only
    described = program.describe(False)
    op_names: dict[Any, str] = {}
    nodes: list[Node] = []
    metas: list[NodeMeta] = []
    parameters: set[int] = set()
    fixed: dict[int, str] = {}
    input_at = 0
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def fill() -> None:
        mode = context.fake_mode
        assert mode is not None
        # Whatever is going on around (a mode, inference, no_grad), these are ordinary fakes.
        with torch.utils._python_dispatch._disable_current_modes(), torch.inference_mode(False), torch.enable_grad():
            maker, texts = ExampleMaker(mode), StackTexts()
            for i, meta in enumerate(metas):
                items = node_items(described[i], nodes[i].name, i in parameters, fixed.get(i), maker, texts)
                if described[i][5] is not None and described[i][5][0] == "number":
                    items.update(number_items(nodes[i], mode))
                meta.settle(items)

    for i, (op, target, _args, _kwargs, hint, result, _stack, source) in enumerate(described):
        kind = None
        if op == "placeholder":
            target = placeholder_target(source or f"input_{input_at}")
            args, kwargs = (), {}
            if input_at < len(input_types):
                kind = input_types[input_at]
                if kind is torch.nn.Parameter:
                    parameters.add(i)
            elif result is not None:
                kind = torch.Tensor
            if input_at in fixed_inputs:
                fixed[i] = fixed_inputs[input_at]
            input_at += 1
            hint = ""
        elif op == "get_attr":
            (value,), kwargs = program.operands(i, nodes)
            _set_attribute(owner, target, value, context)
            args, kwargs = (), {}
        else:
            args, kwargs = program.operands(i, nodes)
            if getattr(target, "__module__", None) == "cdynamo._higher_order":
                target = fx_target(target)
        candidate = hint or op_names.get(target)
        if candidate is None:
            candidate = op_names[target] = graph._target_to_str(target)
        name = create_name(candidate, None)
        node = Node(graph, name, op, target, args, kwargs, kind)
        meta = NodeMeta(fill)
        set_attribute(node, "meta", meta)
        names_of[node] = name
        prepend(node)
        table[(op, target if op == "call_function" else None)][node] = None
        if op == "placeholder":
            set_attribute(node, "_dynamo_source", GraphSource(source) if source else None)
        nodes.append(node)
        metas.append(meta)
    graph._len = len(nodes)
    outputs = tuple(nodes[i] for i in program.outputs)
    tree = program.__dict__.get("output_tree")
    graph.output(outputs if tree is None else _shown(tree, outputs))
    return graph


def _shown(tree: Any, outputs: tuple[Node, ...]) -> Any:
    """The outputs of a body as its caller takes them."""
    if tree is None:
        return None
    return outputs[tree] if isinstance(tree, int) else tuple(_shown(part, outputs) for part in tree)


def _set_attribute(owner: LazyGraphModule, name: str, value: Any, context: BackendContext) -> None:
    if type(value).__name__ == "GraphProgram":
        shaped = "output_tree" in value.__dict__
        value = to_graph_module(value, context)
        if shaped:
            value.recompile()  # the program itself returns a flat tuple
    if isinstance(value, torch.nn.Module):
        owner.add_module(name, value)
    elif isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        owner.register_buffer(name, value, persistent=False)
    else:
        setattr(owner, name, value)
