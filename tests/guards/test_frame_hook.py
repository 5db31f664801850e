"""The frame hook: functions that eagerly run code calls are captured."""

import cProfile
import functools
import gc
import resource
import subprocess
import sys
import textwrap
import threading
import traceback
import types
import weakref

import pytest
import torch

ONE = torch.ones(1)


class Options:
    """As CompileOptions for the engine: any object will do."""


@pytest.fixture
def hooked(C):
    """Calls with the hook on. hooked.seen: the names of the functions that were offered; those in hooked.taken are captured."""
    before = C.configure(strict=True, on_miss=None, on_recompile=None, on_limit=None, on_engine_error=None)

    class Hooked:
        def __init__(self):
            self.seen = []
            self.taken = set()
            self.options = Options()
            self.function = lambda name, values: ("compiled", name, values)

        def __call__(self, function, *args, **kwargs):
            try:
                return C._call_with_hook(self.options, function, *args, **kwargs)
            finally:
                assert not C._frame_hook_installed()

        def capture(self, function, locals, options):
            name = function.__name__
            self.seen.append(name)
            if name not in self.taken:
                return None
            facts = [("type", ("local", i), type(value)) for i, value in enumerate(locals)]
            wanted = tuple(("local", i) for i in range(len(locals)))
            return dict(facts=facts, wanted=wanted, graph_inputs=len(locals), function=lambda a, b: self.function(name, a))

    made = Hooked()
    C._set_test_capture(made.capture)
    yield made
    C._set_test_capture(None)
    C.reset_caches()
    C.configure(**before)


def leaf(x):
    return "eager"


def middle(x):
    return leaf(x)


def test_callees_are_captured(C, hooked):
    hooked.taken = {"leaf"}

    def outer():
        assert C._frame_hook_installed()
        return middle(ONE), leaf(ONE)

    compiled = ("compiled", "leaf", (ONE,))
    assert hooked(outer) == (compiled, compiled)
    assert hooked.seen == ["outer", "middle", "leaf"]
    assert hooked(outer) == (compiled, compiled)
    assert hooked.seen == ["outer", "middle", "leaf"], "captures and skips are remembered"
    assert outer.__closure__ and middle(ONE) == "eager"


def test_every_kind_of_parameter(hooked):
    def plain(a, b=2):
        pass

    def kwonly(a, *, b, c=3):
        pass

    def star(a, *args, b=1, **kwargs):
        pass

    def posonly(a, /, b, c=7):
        pass

    def cells(a, *args, k=2, **kw):
        x = y = 0
        return lambda: (a, args, k, kw, x, y)

    def outer():
        return [
            plain(ONE),
            plain(b=1, a=ONE),
            kwonly(ONE, b=4),
            star(ONE, 1, 2, b=3, z=4),
            star(ONE),
            posonly(ONE, c=1, b=2),
            cells(ONE, 8, k=9, w=10),
        ]

    hooked.taken = {"plain", "kwonly", "star", "posonly", "cells"}
    expected = [
        (ONE, 2), (ONE, 1), (ONE, 4, 3), (ONE, 3, (1, 2), {"z": 4}), (ONE, 1, (), {}), (ONE, 2, 1), (ONE, 9, (8,), {"w": 10}),
    ]  # fmt: skip
    for _ in range(3):
        assert [values for _, _, values in hooked(outer)] == expected


def test_wrong_arguments_are_cpythons_affair(hooked):
    hooked.taken = {"leaf"}
    with pytest.raises(TypeError, match=r"leaf\(\) takes 1 positional argument but 2 were given"):
        hooked(lambda: leaf(ONE, ONE))


class Thing:
    def __init__(self, value):
        self.value = value

    def method(self, x):
        return "eager"

    @classmethod
    def of_class(cls, x):
        return "eager"

    @staticmethod
    def static(x):
        return "eager"

    @property
    def prop(self):
        return "eager"

    def __getitem__(self, key):
        return "eager"

    def __call__(self, x):
        return "eager"

    def __lt__(self, other):
        return "eager"


def test_methods(hooked):
    hooked.taken = {"method", "of_class", "static", "prop", "__call__", "__lt__"}
    thing = Thing(ONE)

    def outer():
        return thing.method(ONE), Thing.of_class(ONE), Thing.static(ONE), thing.prop, thing(ONE), thing < 3

    for _ in range(30):
        answers = hooked(outer)
        assert [answer[1] for answer in answers] == ["method", "of_class", "static", "prop", "__call__", "__lt__"]
        assert answers[0][2] == (thing, ONE) and answers[1][2] == (Thing, ONE)
    assert len(hooked.seen) == 7


def test_callbacks_from_c(hooked):
    hooked.taken = {"key", "pair"}
    hooked.function = lambda name, values: values[0].sum().item() if name == "key" else values[0] + values[1]

    def key(x):
        raise AssertionError

    def pair(x, y):
        raise AssertionError

    def outer():
        tensors = [ONE * 3, ONE, ONE * 2]
        in_order = [t.item() for t in sorted(tensors, key=key)]
        return in_order, list(map(key, tensors)), functools.reduce(pair, tensors).item(), max(tensors, key=key).item()

    assert hooked(outer) == ([1, 2, 3], [3, 1, 2], 6, 3)


def test_generators_run_as_ever(hooked):
    hooked.taken = {"leaf"}

    def numbers(x):
        received = yield leaf(x)
        try:
            yield received, leaf(x)
        except KeyError:
            yield "caught"

    async def coroutine(x):
        return leaf(x)

    def outer():
        running = numbers(ONE)
        got = [next(running), running.send(5), running.throw(KeyError())]
        with pytest.raises(StopIteration):
            next(running)
        with pytest.raises(StopIteration) as stop:
            coroutine(ONE).send(None)
        return got, stop.value.value, tuple(leaf(x) for x in (ONE,))

    compiled = ("compiled", "leaf", (ONE,))
    assert hooked(outer) == ([compiled, (5, compiled), "caught"], compiled, (compiled,))
    assert hooked.seen == ["outer", "leaf"]


def test_exceptions_of_compiled_code(hooked):
    hooked.taken = {"leaf"}

    def fail(name, values):
        raise KeyError("of the compiled code")

    hooked.function = fail

    def outer():
        middle(ONE)

    for _ in range(3):
        with pytest.raises(KeyError, match="of the compiled code") as caught:
            hooked(outer)
        names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert names[-4:] == ["outer", "middle", "<lambda>", "fail"], "the frame that did not run has no line"

    def handler():
        try:
            return leaf(ONE)
        except KeyError as error:
            return type(error), sys.exc_info()[1] is error

    assert hooked(handler) == (KeyError, True)


def test_exceptions_through_the_scope(C, hooked):
    def outer():
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        hooked(outer)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "outer"

    def nested():
        with pytest.raises(ValueError):
            C._call_with_hook(hooked.options, outer)
        return C._frame_hook_installed()

    assert hooked(nested)


def test_what_the_capture_raises(hooked, C):
    def answer(function, locals, options):
        raise KeyError("in the capture") if function.__name__ == "leaf" else NotImplementedError

    def outer():
        with pytest.raises(KeyError, match="in the capture"):
            leaf(ONE)
        return "done"

    C._skip_code(outer.__code__)
    C._set_test_capture(answer)
    assert hooked(outer) == "done"


def test_recursion(hooked):
    def count(x, n):
        return n if n == 0 else count(x, n - 1) + 1

    assert hooked(count, ONE, 200) == 200
    assert hooked.seen == ["count"]

    def bottom(x, n):
        return n

    def down(x, n):
        return bottom(x, n) if n == 0 else down(x, n - 1)

    hooked.taken = {"bottom"}
    assert hooked(down, ONE, 200) == ("compiled", "bottom", (ONE, 0))


def test_endless_recursion(hooked):
    def forever(x):
        return forever(x)

    for _ in range(3):
        with pytest.raises(RecursionError):
            hooked(forever, ONE)

    def depth(x, n):
        try:
            return depth(x, n + 1)
        except RecursionError:
            return n

    assert abs(hooked(depth, ONE, 0) - depth(ONE, 0)) < 5


def run_alone(text):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def test_recursion_deeper_than_the_c_stack():
    """Python calls take no C stack without a hook: no crash with one, nor an error unless another thread has it on."""
    out = run_alone("""
        import sys, threading, torch
        from cdynamo import _C

        def count(n):
            return 0 if n == 0 else count(n - 1) + 1

        sys.setrecursionlimit(10**6)
        print(_C._call_with_hook(None, count, 60000))
        inside, over = threading.Event(), threading.Event()
        def hold():
            inside.set()
            over.wait()
        other = threading.Thread(target=_C._call_with_hook, args=(None, hold))
        other.start()
        inside.wait()
        for call in (count, lambda n: _C._call_with_hook(None, count, n)):
            try:
                call(60000)
            except RecursionError:
                print("RecursionError")
        over.set()
        other.join()
        print(count(60000), _C._frame_hook_installed())
        threading.stack_size(256 * 1024)
        small = threading.Thread(target=lambda: print(_C._call_with_hook(None, count, 20000)))
        small.start()
        small.join()
    """)
    assert out.split("\n") == ["60000", "RecursionError", "RecursionError", "60000 False", "20000", ""]


def test_frames_that_are_never_offered(hooked):
    hooked.taken = {"leaf"}
    source = "class Body:\n    value = leaf(x)\nresult = [Body.value, leaf(x)]"
    point = types.SimpleNamespace(x=ONE)

    def outer():
        namespace = {"leaf": leaf, "x": ONE}
        exec(source, namespace)
        torch.nn.functional.relu(ONE)
        textwrap.dedent("text")
        functools.partial(leaf, ONE)()
        functools.singledispatch(leaf)(ONE)
        return namespace["result"], torch.nn.Identity()(ONE), repr(point)

    results, same, _ = hooked(outer)
    assert results == [("compiled", "leaf", (ONE,))] * 2 and same is ONE
    assert [name for name in hooked.seen if name != "find_spec"] == ["outer", "leaf"]  # an import hook of the environment may be seen


def test_modules(hooked):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(1, 1)

        def forward(self, x):
            return "eager"

    model = Model()
    hooked.taken = {"forward"}
    called = []
    model.register_forward_hook(lambda module, args, output: called.append(output))
    assert hooked(lambda: model(ONE)) == ("compiled", "forward", (model, ONE))
    assert called and hooked.seen.count("forward") == 1


def test_code_to_skip(C, hooked):
    def skipped(x):
        return leaf(x)

    hooked.taken = {"skipped", "leaf"}
    C._skip_code(skipped.__code__)
    assert hooked(lambda: skipped(ONE)) == ("compiled", "leaf", (ONE,))
    with pytest.raises(TypeError):
        C._skip_code(skipped)


def test_disabled_functions(hooked):
    import cdynamo

    hooked.taken = {"middle", "leaf"}
    compiled = ("compiled", "leaf", (ONE,))
    whole = cdynamo.disable(middle)
    alone = cdynamo.disable(middle, recursive=False)

    def marked(x):
        return leaf(x)

    marked._torchdynamo_disable = True

    @functools.wraps(whole)
    def wrapper(x):
        return leaf(x), whole(x)

    wrapper.__name__ = "wrapper"
    theirs = torch.compiler.disable(middle)

    assert hooked(lambda: whole(ONE)) == "eager"
    assert hooked(lambda: theirs(ONE)) == "eager"
    assert hooked(lambda: (whole(ONE), leaf(ONE))) == ("eager", compiled), "on again after it"
    assert hooked(lambda: alone(ONE)) == ("compiled", "middle", (ONE,)), "what it calls is not disabled"
    assert hooked(lambda: marked(ONE)) == compiled
    assert hooked(lambda: wrapper(ONE)) == (compiled, "eager"), "marks that functools.wraps copied"
    assert "marked" not in hooked.seen and "disabled" not in hooked.seen


def test_calls_without_tensors_are_not_offered(hooked):
    class Config:
        def __init__(self):
            self.sizes = {"a": [1, 2], "b": (3.0, None)}

        def total(self, key):
            return sum(self.sizes[key])

    def plain(n, text="t", *rest, **more):
        return n

    def constructs(n):
        return torch.ones(n)

    def nested(values):
        return values

    def over_cell(n):
        return (n, bound) and n

    bound = ONE
    config = Config()
    vars(config)

    def outer():
        plain(3), plain(1, "b", 2.0, key=[None, {1: b"x"}]), config.total("a")
        constructs(2), nested([{"deep": (ONE,)}]), over_cell(1)
        return plain(ONE)

    hooked.taken = {"plain"}
    assert hooked(outer) == ("compiled", "plain", (ONE, "t", (), {}))
    assert hooked.seen == ["outer", "constructs", "nested", "over_cell", "plain"]


def test_stance_and_depth(C, hooked):
    hooked.taken = {"leaf"}
    C.configure(stance="force_eager")
    assert hooked(lambda: leaf(ONE)) == "eager"
    C.configure(stance="default")

    def outer():
        C.eager_depth(1)
        try:
            return leaf(ONE)
        finally:
            C.eager_depth(-1)

    assert hooked(outer) == "eager"
    assert hooked(lambda: leaf(ONE))[0] == "compiled"


def test_compiled_code_and_captures_are_not_hooked(C, hooked):
    hooked.taken = {"middle"}
    installed = []

    def running(name, values):
        installed.append(C._frame_hook_installed())
        return leaf(*values)

    hooked.function = running
    hooked_capture = hooked.capture

    def capture(*args):
        installed.append(C._frame_hook_installed())
        assert leaf(ONE) == "eager"
        return hooked_capture(*args)

    C._set_test_capture(capture)

    def outer():
        first = middle(ONE), C._frame_hook_installed()
        return first, middle(ONE)

    assert hooked(outer) == (("eager", True), "eager")
    assert set(installed) == {False} and hooked.seen == ["outer", "middle"]


def test_eager_part_below_compiled_code(C, hooked):
    hooked.taken = {"middle", "leaf"}
    hooked.function = lambda name, values: C._call_with_hook(hooked.options, lambda: leaf(ONE)) if name == "middle" else "compiled leaf"

    def outer():
        return middle(ONE), C._frame_hook_installed()

    assert hooked(outer) == ("compiled leaf", True)


def test_options_of_the_innermost_scope(C, hooked):
    seen = []
    C._set_test_capture(lambda function, locals, options: seen.append((function.__name__, options)))
    other = Options()

    def outer():
        middle(ONE)
        C._call_with_hook(other, middle, ONE)
        return leaf(ONE)

    C._skip_code(outer.__code__)
    hooked(outer)
    mine = hooked.options
    assert seen == [("middle", mine), ("leaf", mine), ("middle", other), ("leaf", other)]


def test_compiled_functions_below(C, hooked):
    other = Options()
    inner = C.CompiledFunction(leaf, other)
    hooked.taken = {"leaf"}
    assert hooked(lambda: (inner(ONE), leaf(ONE))) == (("compiled", "leaf", (ONE,)),) * 2
    assert hooked.seen.count("leaf") == 2, "one capture for each options object"


def test_other_threads_are_not_captured(C, hooked):
    hooked.taken = {"leaf"}
    results = {}

    def outer():
        def elsewhere():
            results["other"] = leaf(ONE), C._frame_hook_installed()

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        results["here"] = leaf(ONE)

    hooked(outer)
    assert results == {"other": ("eager", True), "here": ("compiled", "leaf", (ONE,))}


def test_many_threads(C, hooked):
    hooked.taken = {"leaf"}
    errors = []

    def work(x, n):
        for _ in range(n):
            if leaf(x)[0] != "compiled":
                errors.append("not compiled")

    def start(n):
        for _ in range(20):
            C._call_with_hook(hooked.options, work, ONE, n)
            if leaf(ONE) != "eager":
                errors.append("compiled outside")

    C._skip_code(work.__code__)
    hooked(lambda: leaf(ONE))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=start, args=(50 + i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors and not C._frame_hook_installed()


@pytest.mark.parametrize("setter", [sys.settrace, sys.setprofile], ids=["trace", "profile"])
def test_tracers(hooked, setter):
    hooked.taken = {"leaf", "failing"}

    def compiled(name, values):
        if name == "failing":
            raise KeyError(name)
        return "compiled"

    hooked.function = compiled

    def failing(x):
        return "eager"

    def outer():
        answers = [leaf(ONE), middle(ONE)]
        try:
            failing(ONE)
        except KeyError:
            answers.append("raised")
        return answers

    events = []

    def watch(frame, event, arg):
        events.append((event, frame.f_code.co_name, frame.f_lineno))
        return watch

    hooked(outer)
    before = sys.gettrace(), sys.getprofile()
    setter(watch)
    try:
        answers = hooked(outer)
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    assert answers == ["compiled", "compiled", "raised"]
    calls = [name for event, name, _ in events if event == "call"]
    assert "middle" in calls and "leaf" not in calls and "failing" not in calls
    names = {"outer", "middle", "compiled"}
    returns = [name for event, name, _ in events if event == "return"]
    assert [n for n in calls if n in names].count("middle") == returns.count("middle") == 1


def test_profiler(hooked):
    hooked.taken = {"leaf"}
    profile = cProfile.Profile()
    assert profile.runcall(hooked, lambda: [middle(ONE) for _ in range(5)])[4][0] == "compiled"


def test_lifetimes(hooked):
    class Owned:
        def __init__(self):
            self.tensor = ONE

    def keeps(x):
        return None

    def fails(x):
        return None

    def compiled(name, values):
        if name == "fails":
            raise KeyError
        return values

    hooked.taken = {"keeps", "fails"}
    hooked.function = compiled

    def outer():
        first = Owned()
        watched = weakref.ref(first)
        got = keeps(first)
        assert got[0] is first
        try:
            fails(first)
        except KeyError:
            pass
        del first, got
        assert watched() is None
        alone = weakref.ref(keeps(Owned())[0])
        assert alone() is None
        return "done"

    for _ in range(3):
        assert hooked(outer) == "done"


def test_no_leak_over_many_calls(hooked):
    def echo(x, y=None, *rest, **more):
        return None

    def fails(x):
        return None

    def compiled(name, values):
        if name == "fails":
            raise KeyError(name)
        return values

    hooked.taken = {"echo", "fails"}
    hooked.function = compiled

    def outer(n):
        for i in range(n):
            echo(ONE, [0] * 100, i, key=bytes(1000))
            leaf(ONE)
            try:
                fails(ONE)
            except KeyError:
                pass

    hooked(outer, 10000)
    gc.collect()
    counts = [sys.getrefcount(f) for f in (ONE, echo, leaf, echo.__code__, leaf.__code__)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hooked(outer, 10000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 4000
    assert [sys.getrefcount(f) for f in (ONE, echo, leaf, echo.__code__, leaf.__code__)] == counts


def test_finalizers_run_below_the_hook(hooked):
    died = []

    class Loud:
        def __del__(self):
            died.append(leaf(ONE))

    hooked.taken = {"leaf", "takes"}

    def takes(x, y):
        return None

    def outer():
        takes(ONE, Loud())

    hooked(outer)
    hooked(outer)
    assert len(died) == 2 and died[1][0] == "compiled"


def test_code_objects_die(C, hooked):
    before = C.cache_count()
    for i in range(50):
        namespace = {"ONE": ONE}
        exec(f"def made(x):\n    return {i}", namespace)
        assert hooked(namespace.pop("made"), ONE) == i
    gc.collect()
    assert C.cache_count() <= before + 2


def test_caches_die_with_their_options(C, hooked):
    C.reset()
    before = C.cache_count()
    compiled = C.CompiledFunction(lambda x: 1, hooked.options)
    compiled(ONE)
    hooked(lambda: middle(ONE))
    assert C.cache_count() > before + 2
    options = weakref.ref(hooked.options)
    hooked.options = None
    assert options() is not None
    del compiled
    assert options() is not None, "the same may come again"
    others = [C.CompiledFunction(lambda x: 1, object()) for _ in range(16)]
    for other in others:
        other(ONE)
    assert options() is not None
    del other, others
    assert options() is None
    C.reset()
    assert C.cache_count() == before


def test_reset_below_the_hook(C, hooked):
    hooked.taken = {"leaf"}

    def outer():
        first = leaf(ONE)
        C.reset_caches()
        return first, leaf(ONE)

    assert hooked(outer) == (("compiled", "leaf", (ONE,)),) * 2
    assert hooked.seen.count("leaf") == 2


def test_together_with_torch_dynamo(C, hooked):
    """Both use PEP 523; whoever comes last must not lose the other's evaluator, nor loop."""
    hooked.taken = {"leaf"}
    theirs = torch.compile(lambda x: x.sin(), backend="eager")
    compiled = ("compiled", "leaf", (ONE,))

    def outer():
        before = leaf(ONE)
        with torch.no_grad():
            assert torch.equal(theirs(ONE), ONE.sin())
        return before, leaf(ONE)

    for _ in range(3):
        assert hooked(outer) == (compiled, compiled)

    def broken(x):
        torch._dynamo.graph_break()
        return x + 1, ours(), leaf(ONE)

    @torch.compiler.disable
    def ours():
        return C._call_with_hook(hooked.options, lambda: leaf(ONE))

    for _ in range(2):
        value, inner, after = torch.compile(broken, backend="eager")(ONE)
        assert value.item() == 2 and after == "eager" and inner in (compiled, "eager")
    torch._dynamo.reset()
    assert hooked(outer) == (compiled, compiled)


def test_breaks_and_callees(C):
    """The callee of a broken instruction is captured, breaks of its own included; steps and continuations are not captured as frames."""
    import cdynamo

    graphs = []

    def backend(gm, inputs):
        graphs.append([str(n.target) for n in gm.graph.nodes if n.op.startswith("call")])
        return gm.forward

    class Opaque:
        """Calls back from C, where no capture goes."""

        def __init__(self, f):
            self.call = functools.partial(f)

    said = []

    def breaking(x):
        y = x.sin()
        print(end="")
        said.append(C._frame_hook_installed())
        return y.cos()

    def callback(x):
        return breaking(x).tan()

    def outer(x):
        y = x.relu()
        z = sum(map(Opaque(callback).call, [y, y]))
        return z.exp()

    x = torch.rand(3)
    compiled = cdynamo.compile(outer, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(x), outer(x))
    assert not C._frame_hook_installed()
    count = len(graphs)
    compiled(x)
    assert len(graphs) == count, graphs
    assert {op for graph in graphs for op in graph} >= {"relu", "sin", "cos", "tan", "exp"}, graphs


class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x):
        return scaled(self.linear(x), 2).relu()


def scaled(x, by):
    return x * by


def mismatched(x):
    y = x + 1
    return y @ torch.ones(7, 7)


def test_real_captures(C):
    from cdynamo._compile import make_options

    graphs = []

    def backend(gm, inputs):
        graphs.append(len([n for n in gm.graph.nodes if n.op.startswith("call")]))

        def run(*args):
            assert not C._frame_hook_installed()
            return scaled(ONE, 1) is not None and gm.forward(*args)

        return run

    options = make_options(backend=backend)
    model, x = Affine(), torch.randn(2, 3)

    def outer(model, x):
        total = model(x)
        for i in range(3):
            total = total + scaled(x, i)
        return total, [scaled(t, 5) for t in (x, total)]

    C._skip_code(outer.__code__)
    for _ in range(3):
        expected, actual = outer(model, x), C._call_with_hook(options, outer, model, x)
        assert torch.equal(actual[0], expected[0]) and all(map(torch.equal, actual[1], expected[1]))
    assert graphs[0] == 3 and len(graphs) > 1
    count = len(graphs)
    C._call_with_hook(options, outer, model, x)
    assert len(graphs) == count
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as caught:
        C._call_with_hook(options, lambda: mismatched(x))
    frames = [(frame.name, frame.line) for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == ("mismatched", "return y @ torch.ones(7, 7)") and [name for name, _ in frames].count("mismatched") == 1
