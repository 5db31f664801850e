"""The compiled function object, with a capture hook written in Python."""

import functools
import gc
import inspect
import itertools
import sys
import threading
import types
import warnings
import weakref

import pytest


@pytest.fixture
def hook(C):
    """Installs a hook; hook.calls counts captures. By default a capture guards every int argument by value."""
    before = C.configure(strict=True, on_miss=None, on_recompile=None, on_limit=None, on_engine_error=None)

    class Hook:
        calls = 0
        answer = None

        def __call__(self, function, locals, options):
            self.calls += 1
            if self.answer is not None:
                return self.answer(function, locals, options)
            facts = []
            for i, value in enumerate(locals):
                facts.append(("equals", ("local", i), value) if type(value) is int else ("type", ("local", i), type(value)))
            wanted = tuple(("local", i) for i in range(len(locals)))
            return dict(facts=facts, wanted=wanted, graph_inputs=1 if locals else 0, function=lambda a, b: ("compiled", a + b))

    made = Hook()
    C._set_test_capture(made)
    yield made
    C._set_test_capture(None)
    C.reset_caches()
    C.configure(**before)


def signatures():
    def none():
        return locals()

    def one(a):
        return locals()

    def two(a, b=2):
        return locals()

    def posonly(a, b=5, /, c=6, *, d=7):
        return locals()

    def posonly_kw(a, b=5, /, c=6, **kw):
        return locals()

    def star(*args):
        return locals()

    def stars(*args, **kwargs):
        return locals()

    def full(a, b, c=3, *rest, d, e=5, **kw):
        return locals()

    def kwonly(*, a, b=1):
        return locals()

    def cells(a, *args, b=1, **kw):
        inner = lambda: (a, args, b, kw)  # noqa: E731
        return inner and locals()

    return [none, one, two, posonly, posonly_kw, star, stars, full, kwonly, cells]


def calls():
    for n in range(5):
        for keys in itertools.chain.from_iterable(itertools.combinations("abcdez", k) for k in range(4)):
            yield tuple(range(n)), {k: k.upper() for k in keys}


@pytest.mark.parametrize("f", signatures(), ids=lambda f: f.__name__)
def test_binding_is_cpythons(C, f):
    code = f.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
    for args, kwargs in calls():
        try:
            slots = f(*args, **kwargs)
        except TypeError:
            assert C._bind(f, args, kwargs) is None, (args, kwargs)
            continue
        assert C._bind(f, args, kwargs) == [slots[n] for n in names], (args, kwargs)


@pytest.mark.parametrize("f", signatures(), ids=lambda f: f.__name__)
def test_binding_errors_word_for_word(C, hook, f):
    compiled = C.CompiledFunction(f, None)
    C.configure(recompile_limit=0, on_limit=lambda *a: None)

    def outcome(callable, args, kwargs):
        try:
            callable(*args, **kwargs)
            return None
        except TypeError as error:
            return str(error)

    for args, kwargs in calls():
        assert outcome(f, args, kwargs) == outcome(compiled, args, kwargs)


def test_keyword_that_is_equal_but_not_identical(C):
    def f(abc, **kw):
        pass

    name = "".join(["a", "bc"])
    assert C._bind(f, (), {name: 1}) == [1, {}]
    assert C._bind(f, (1,), {name: 1}) is None


def test_defaults_are_read_at_the_call(C, hook):
    def f(a, b=1, *, c=2):
        pass

    compiled = C.CompiledFunction(f, None)
    assert compiled(0) == ("compiled", (0, 1, 2))
    f.__defaults__ = (5,)
    f.__kwdefaults__ = {"c": 6}
    assert compiled(0) == ("compiled", (0, 5, 6))
    assert hook.calls == 2


def test_hit_and_miss(C, hook):
    compiled = C.CompiledFunction(lambda n: n, None)
    assert compiled(1) == ("compiled", (1,))
    assert compiled(1) == ("compiled", (1,))
    assert hook.calls == 1
    assert compiled(n=2) == ("compiled", (2,))
    assert hook.calls == 2
    assert [e["hits"] for e in compiled.entries()] == [1, 2]
    compiled(1)
    assert [e["hits"] for e in compiled.entries()] == [3, 1], "the entry used last comes first"
    assert "EQUALS_MATCH: L['n'] == 1" in compiled.entries()[0]["guards"]


def test_direct_entries(C, hook):
    def graph(*inputs):
        return (sum(inputs), "second")

    hook.answer = lambda f, values, o: dict(facts=[("type", ("local", 0), int)], wanted=(("local", 0), ("local", 1)), graph=graph, output=0)
    compiled = C.CompiledFunction(lambda a, b: None, None)
    assert compiled(1, 2) == 3
    assert compiled(4, 2) == 6
    assert hook.calls == 1
    C.reset_caches()
    hook.answer = lambda f, values, o: dict(facts=[], wanted=(("local", 0),), graph=lambda a: [a, a + 1], output=1)
    assert compiled(1, 2) == 2
    C.reset_caches()
    hook.answer = lambda f, values, o: dict(facts=[], wanted=(), graph=lambda: (7,), output=-1)
    assert compiled(1, 2) == (7,)


def test_methods(C, hook):
    class A:
        def __init__(self, k):
            self.k = k

        def m(self, n):
            return self.k, n

        c = C.CompiledFunction(lambda self, n: (self.k, n), None)

    a = A(5)
    assert A.c is A.__dict__["c"]
    assert a.c(3) == ("compiled", (a, 3))
    assert A.c(a, 3) == ("compiled", (a, 3))
    assert isinstance(a.c, types.MethodType)
    bound = C.CompiledFunction(a.m, None)
    assert bound(4) == ("compiled", (a, 4))
    assert bound(n=4) == ("compiled", (a, 4))
    assert hook.calls == 2
    with pytest.raises(TypeError) as caught:
        bound(1, 2)
    with pytest.raises(TypeError) as expected:
        a.m(1, 2)
    assert str(caught.value) == str(expected.value)


def test_other_callables_run_as_they_are(C, hook):
    for callable in (len, str.upper):
        assert C.CompiledFunction(callable, None)("abc") == callable("abc")
    assert C.CompiledFunction(functools.partial(max, 3), None)(4) == 4
    assert hook.calls == 0
    with pytest.raises(TypeError):
        C.CompiledFunction(3, None)

    def generator(n):
        yield n

    assert list(C.CompiledFunction(generator, None)(3)) == [3]
    assert hook.calls == 0


def test_attributes(C):
    def f(a, b=1):
        """Text."""

    f.extra = 5
    compiled = C.CompiledFunction(f, "options")
    assert compiled.__wrapped__ is f and compiled._torchdynamo_orig_callable is f
    assert (compiled.__name__, compiled.__doc__, compiled.__module__, compiled.__qualname__) == ("f", "Text.", f.__module__, f.__qualname__)
    assert compiled.extra == 5 and compiled.options == "options"
    assert str(inspect.signature(compiled)) == "(a, b=1)"
    assert repr(compiled) == f"<cdynamo.compiled {f.__qualname__}>"
    compiled.note = 1
    assert compiled.__dict__["note"] == 1
    assert weakref.ref(compiled)() is compiled
    assert compiled.entries() == []


def test_cache_is_shared_by_code_and_options(C, hook):
    def make():
        return lambda n: n

    options = object()
    assert C.CompiledFunction(make(), options)(1)
    assert C.CompiledFunction(make(), options)(1)
    assert hook.calls == 1
    assert C.CompiledFunction(make(), object())(1)
    assert hook.calls == 2


def test_other_globals_do_not_share(C, hook):
    f = lambda n: n  # noqa: E731
    twin = types.FunctionType(f.__code__, {})
    options = object()
    C.CompiledFunction(f, options)(1)
    C.CompiledFunction(twin, options)(1)
    assert hook.calls == 2


def test_code_assigned(C, hook):
    def f(n):
        return "f"

    def g(n):
        return "g"

    compiled = C.CompiledFunction(f, None)
    compiled(1)
    f.__code__ = g.__code__
    compiled(1)
    assert hook.calls == 2
    compiled(1)
    assert hook.calls == 2


def test_caches_go(C, hook):
    gc.collect()
    C.reset()
    before = C.cache_count()
    scope = {}
    exec("def f(n): return n", scope)
    compiled = C.CompiledFunction(scope["f"], None)
    hook.answer = lambda f, values, o: "skip"
    compiled(1)
    assert C.cache_count() == before + 1
    del compiled
    scope.clear()
    gc.collect()
    assert C.cache_count() == before
    compiled = C.CompiledFunction(lambda n: n, object())
    hook.answer = None
    compiled(1)
    del compiled
    assert C.cache_count() == before + 1, "the same options may come again"
    C.reset()
    assert C.cache_count() == before


def test_skip(C, hook):
    hook.answer = lambda f, values, o: "no good"
    compiled = C.CompiledFunction(lambda n: n + 1, None)
    assert compiled.skip_reason is None
    assert [compiled(i) for i in range(4)] == [1, 2, 3, 4]
    assert hook.calls == 1
    assert compiled.skip_reason == "no good"
    compiled.reset()
    hook.answer = lambda f, values, o: ("once", "not now")
    assert [compiled(i) for i in range(4)] == [1, 2, 3, 4]
    assert hook.calls == 5


def test_skip_keeps_earlier_entries(C, hook):
    compiled = C.CompiledFunction(lambda n: n, None)
    assert compiled(1) == ("compiled", (1,))
    hook.answer = lambda f, values, o: "no good"
    assert compiled(2) == 2
    assert compiled(1) == ("compiled", (1,))


def test_limit(C, hook):
    events = []
    C.configure(recompile_limit=3, on_recompile=lambda f, reasons: events.append(reasons))
    compiled = C.CompiledFunction(lambda n: n, None)
    for i in range(3):
        assert compiled(i) == ("compiled", (i,))
    with pytest.warns(RuntimeWarning, match=r"recompile_limit \(3\)[\s\S]*last reason: L\['n'\] == 2  # actual: 3"):
        assert compiled(3) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(4) == 4
        assert compiled(1) == ("compiled", (1,))
    assert hook.calls == 3
    assert events == [["L['n'] == 0  # actual: 1"], ["L['n'] == 1  # actual: 2", "L['n'] == 0  # actual: 2"]]

    def refuse(function, limit, reasons, options):
        raise KeyError(limit, len(reasons))

    C.configure(on_limit=refuse)
    own = C.CompiledFunction(lambda n: n, None, recompile_limit=1)
    assert own(1)
    with pytest.raises(KeyError) as caught:
        own(2)
    assert caught.value.args == (1, 1)
    with pytest.raises(KeyError):  # at every call, not only once
        own(2)


def test_limit_is_per_object(C, hook):
    class Layer:
        pass

    C.configure(recompile_limit=2, accumulated_limit=6)
    hook.answer = lambda f, values, o: dict(
        facts=[("is", ("local", 0), values[0]), ("equals", ("local", 1), values[1])], wanted=(), function=lambda a, b: "compiled"
    )
    compiled = C.CompiledFunction(lambda self, n: "eager", None)
    layers = [Layer() for _ in range(3)]
    assert [compiled(layer, n) for layer in layers for n in range(2)] == ["compiled"] * 6
    with pytest.warns(RuntimeWarning, match="recompile_limit"):
        assert compiled(layers[0], 2) == "eager"
    assert compiled(Layer(), 0) == "eager", "the accumulated limit"
    del layers[0]
    assert compiled(layers[0], 5) == "eager"
    assert len(compiled.entries()) == 4, "entries for dead objects are dropped"
    assert compiled(Layer(), 0) == "compiled"


def test_stances(C, hook):
    compiled = C.CompiledFunction(lambda n: n, None)
    C.configure(stance="force_eager")
    assert compiled(1) == 1 and hook.calls == 0
    C.configure(stance="eager_then_compile")
    assert compiled(1) == 1 and compiled(1) == ("compiled", (1,))
    C.configure(stance="eager_on_recompile")
    assert compiled(2) == 2 and compiled(1) == ("compiled", (1,))
    C.configure(stance="fail_on_recompile")
    assert compiled(1) == ("compiled", (1,))
    with pytest.raises(RuntimeError, match=r"Detected recompile when torch\.compile stance is 'fail_on_recompile'\.[\s\S]*L\['n'\] == 1"):
        compiled(2)
    assert C.configure(stance="default")["stance"] == "fail_on_recompile"
    assert C.eager_depth(1) == 1
    assert compiled(1) == 1
    assert C.eager_depth(-1) == 0
    assert compiled(1) == ("compiled", (1,))
    with pytest.raises(ValueError):
        C.configure(stance="odd")
    with pytest.raises(ValueError):
        C.eager_depth(-1)


def test_exceptions(C, hook):
    class Own(Exception):
        pass

    def fail(*args):
        raise Own("here")

    hook.answer = fail
    compiled = C.CompiledFunction(lambda n: n, None)
    with pytest.raises(Own):
        compiled(1)
    hook.answer = lambda f, values, o: dict(facts=[], wanted=(), function=fail)
    with pytest.raises(Own):
        compiled(1)
    with pytest.raises(Own):
        compiled(1)
    assert hook.calls == 2


def test_engine_failure(C, hook):
    hook.answer = lambda f, values, o: 5
    compiled = C.CompiledFunction(lambda n: n, None)
    with pytest.raises(RuntimeError, match="internal error"):
        compiled(1)
    C.configure(strict=False)
    with pytest.warns(RuntimeWarning, match="internal error"):
        assert compiled(1) == 1
    heard = []
    C.configure(on_engine_error=lambda f, text: heard.append(text))
    assert compiled(1) == 1
    assert "unknown" in heard[0]


def test_new_capture_whose_guards_fail(C, hook):
    hook.answer = lambda f, values, o: dict(facts=[("equals", ("local", 0), 77)], wanted=(), function=lambda a, b: "wrong")
    compiled = C.CompiledFunction(lambda n: n, None)
    with pytest.raises(RuntimeError, match=r"do not hold: L\['n'\] == 77"):
        compiled(1)
    C.configure(strict=False, on_engine_error=lambda *a: None)
    compiled.reset()
    assert compiled(1) == 1 and compiled(1) == 1
    assert hook.calls == 4  # each is tried twice: the first attempt may have changed what it relied on, by an import


def test_inside_a_capture_everything_is_eager(C, hook):
    inner = C.CompiledFunction(lambda n: n, None)
    seen = []

    def answer(f, values, o):
        seen.append(inner(3))
        return "skip"

    hook.answer = answer
    C.CompiledFunction(lambda n: n, None)(1)
    assert seen == [3] and hook.calls == 1


def test_reset_during_a_call(C, hook):
    died = []

    class Callable:
        def __call__(self, a, b):
            C.reset_caches()
            gc.collect()
            assert not died
            return "done"

        def __del__(self):
            died.append(1)

    hook.answer = lambda f, values, o: dict(facts=[("type", ("local", 0), int)], wanted=(("local", 0),), function=Callable())
    compiled = C.CompiledFunction(lambda n: n, None)
    assert compiled(1) == "done"
    gc.collect()
    assert died == [1] and compiled.entries() == []
    died.clear()
    assert compiled(1) == "done"


def test_reset_during_a_capture(C, hook):
    def answer(f, values, o):
        C.reset_caches()
        return dict(facts=[], wanted=(), function=lambda a, b: "compiled")

    hook.answer = answer
    compiled = C.CompiledFunction(lambda n: n, None)
    assert compiled(1) == 1
    assert compiled.entries() == []


def test_recursion_and_recompile_in_a_call(C, hook):
    def answer(f, values, o):
        n = values[0]
        run = (lambda a, b: ("leaf",)) if n == 0 else (lambda a, b: (n, *compiled(n - 1)))
        return dict(facts=[("equals", ("local", 0), n)], wanted=(), function=run)

    hook.answer = answer
    compiled = C.CompiledFunction(lambda n: n, None)
    assert compiled(5) == (5, 4, 3, 2, 1, "leaf")
    assert compiled(5) == (5, 4, 3, 2, 1, "leaf")
    assert hook.calls == 6


def test_deep_recursion_is_an_exception(C, hook):
    hook.answer = lambda f, values, o: dict(facts=[], wanted=(("local", 0),), function=lambda a, b: compiled(b[0]), graph_inputs=0)
    compiled = C.CompiledFunction(lambda n: n, None)
    with pytest.raises(RecursionError):
        compiled(1)


def test_threads(C, hook):
    started, go_on = threading.Event(), threading.Event()

    def answer(f, values, o):
        started.set()
        go_on.wait(10)
        return dict(facts=[], wanted=(), function=lambda a, b: "compiled")

    hook.answer = answer
    compiled = C.CompiledFunction(lambda n: "eager", None)
    results = []
    thread = threading.Thread(target=lambda: results.append(compiled(1)))
    thread.start()
    assert started.wait(10)
    assert compiled(1) == "eager"
    go_on.set()
    thread.join()
    assert results == ["compiled"] and compiled(1) == "compiled" and hook.calls == 1


def test_thread_storm(C, hook):
    C.configure(recompile_limit=64)
    compiled = C.CompiledFunction(lambda n: ("eager", n), None)
    wrong, stop = [], threading.Event()

    def work(seed):
        for i in range(3000):
            n = (i * 7 + seed) % 20
            if compiled(n) not in (("compiled", (n,)), ("eager", n)):
                wrong.append(n)

    def resetter():
        while not stop.is_set():
            C.reset_caches()
            stop.wait(0.001)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(s,)) for s in range(6)]
        other = threading.Thread(target=resetter)
        for t in (*threads, other):
            t.start()
        for t in threads:
            t.join()
        stop.set()
        other.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_no_leaks(C, hook):
    def f(a, b, *args, k=1, **kw):
        return a

    compiled = C.CompiledFunction(f, None)
    a, b, extra, value = object(), object(), object(), object()
    names = [a, b, extra, value, f, f.__code__]
    compiled(a, b, extra, z=value)
    counts = [sys.getrefcount(x) for x in names]
    for _ in range(10000):
        compiled(a, b, extra, z=value)
        try:
            compiled(a)
        except TypeError:
            pass
    assert counts == [sys.getrefcount(x) for x in names]
    assert hook.calls == 1
    ref = weakref.ref(compiled)
    compiled.self_cycle = compiled
    del compiled
    gc.collect()
    assert ref() is None


def test_arguments_are_not_kept(C, hook):
    class Thing:
        pass

    compiled = C.CompiledFunction(lambda t: None, None)
    thing = Thing()
    ref = weakref.ref(thing)
    assert compiled(thing)[0] == "compiled"
    del thing
    assert ref() is None


def test_values_stay_alive_during_the_call(C, hook):
    """The running code drops the container that the value came from."""
    box = [[object()]]

    def run(inputs, objects):
        box.clear()
        gc.collect()
        return inputs[0]

    hook.answer = lambda f, values, o: dict(facts=[], wanted=(("seq", ("seq", ("local", 0), 0), 0),), graph_inputs=1, function=run)
    compiled = C.CompiledFunction(lambda b: None, None)
    for _ in range(5):
        box[:] = [[object()]]
        assert type(compiled(box)) is object


def test_module_call(C):
    torch = pytest.importorskip("torch")
    m = torch.nn.Linear(2, 2)
    call = C.CompiledModuleCall(m, lambda *a, **k: ("forward", a, k), lambda *a, **k: ("call", a, k))
    assert call(1, b=2) == ("forward", (1,), {"b": 2})
    assert call.module is m and call.uses_forward()
    handle = m.register_forward_hook(lambda *a: None)
    assert call(1)[0] == "call"
    handle.remove()
    assert call(1)[0] == "forward"
    handle = torch.nn.modules.module.register_module_forward_pre_hook(lambda *a: None)
    assert call(1)[0] == "call"
    handle.remove()
    assert call(1)[0] == "forward"
    handle = m.register_full_backward_hook(lambda *a: None)
    assert call(1)[0] == "call"
    handle.remove()
    m.forward = lambda x: x
    assert call(1)[0] == "call"
    del m.forward
    assert call(1)[0] == "forward"
    original = torch.nn.Linear.forward
    try:
        torch.nn.Linear.forward = lambda self, x: x
        assert call(1)[0] == "call"
    finally:
        torch.nn.Linear.forward = original
    assert call(1)[0] == "forward"

    class Other(torch.nn.Linear):
        pass

    m.__class__ = Other
    assert call(1)[0] == "call"
    ref = weakref.ref(call)
    m.loop = call
    del m, call
    gc.collect()
    assert ref() is None
