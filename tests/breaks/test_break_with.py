"""Breaks in `with`: the real manager was entered, and is left once, with the exception that there is."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import contextlib
import io
import threading
import warnings

import torch
from harness import Breaks, Setup, boom, ext, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


class Manager:
    """Tells what it sees; swallows the exceptions it was told to."""

    def __init__(self, name="m", swallow=()):
        self.name, self.swallow, self.state = name, swallow, "new"

    def __enter__(self):
        note("enter", self.name)
        self.state = "in"
        return self

    def __exit__(self, kind, value, trace):
        note("exit", self.name, None if kind is None else kind.__name__, str(value), trace is not None)
        self.state = "out"
        return kind is not None and kind in self.swallow


class TensorManager:
    """Its two methods compute."""

    def __init__(self, x):
        self.x = x

    def __enter__(self):
        self.x = self.x * 2
        return self.x

    def __exit__(self, *exc):
        self.x = self.x + 1


class OpaqueManager:
    @torch.compiler.disable
    def __enter__(self):
        note("enter")
        return 2

    @torch.compiler.disable
    def __exit__(self, *exc):
        note("exit", exc[0] and exc[0].__name__)
        return exc[0] is KeyError


@contextlib.contextmanager
def generated(name="g", swallow=False):
    note("enter", name)
    try:
        yield name
    except KeyError:
        note("error", name)
        if not swallow:
            raise
    finally:
        note("exit", name)


@contextlib.contextmanager
def scaled(x):
    yield x * 2
    note("left")


@contextlib.contextmanager
def grad_off():
    with torch.no_grad():
        yield


PLAIN = {
    "user_manager": "with Manager() as m:\n    y = x + 1\n    ext(y)\n    y = y * 2\nreturn y - 1, m.state",
    "user_manager_break_first": ("with Manager():\n    ext(x)\n    y = x + 1\nreturn y * 2", {"graphs": 1}),
    "user_manager_break_last": "with Manager():\n    y = x + 1\n    ext(y)\nreturn y * 2",
    "user_manager_value": "with Manager('v') as m:\n    y = x + 1\n    ext(m.name)\n    y = y * 2\nreturn y",
    "tensor_manager": "with TensorManager(x) as v:\n    y = v + 1\n    ext(y)\n    y = y * v\nreturn y - 1",
    "tensor_manager_kept": """
        m = TensorManager(x)
        with m as v:
            y = v + 1
            ext(y)
            y = y * v
        return y - m.x
        """,
    "generator_manager": "with generated() as n:\n    y = x + 1\n    ext(n)\n    y = y * 2\nreturn y - 1",
    "generator_manager_tensor": "with scaled(x) as v:\n    y = v + 1\n    ext(y)\n    y = y * v\nreturn y - 1",
    "nested_managers": """
        with Manager('a'):
            with Manager('b'):
                y = x + 1
                ext(y)
                y = y * 2
            y = y - 1
        return y
        """,
    "nested_kinds": """
        with Manager('a'):
            with generated('b'):
                with torch.no_grad():
                    y = x + 1
                    ext(y)
                    y = y * 2
                y = y - 1
        return y
        """,
    "two_items": """
        with Manager('a') as a, Manager('b') as b:
            y = x + 1
            ext(a.name, b.name)
            y = y * 2
        return y - 1
        """,
    "two_items_second_breaks": """
        y = x + 1
        with Manager('a') as a, ext(Manager('b')) as b:
            y = y * 2
        return y - 1
        """,
    "break_between": "with Manager('a'):\n    y = x + 1\next(y)\nwith Manager('b'):\n    y = y * 2\nreturn y",
    "break_in_manager_expression": "y = x + 1\nwith ext(Manager()):\n    y = y * 2\nreturn y",
    "opaque_manager": ("y = x + 1\nwith OpaqueManager() as n:\n    y = y * n\nreturn y - 1", {"graphs": 3}),
    "opaque_manager_break_inside": (
        """
        y = x + 1
        with OpaqueManager() as n:
            y = y * n
            ext(y)
            y = y / 2
        return y - 1
        """,
        {"graphs": 4},
    ),
    "return_inside": "with Manager():\n    y = x + 1\n    ext(y)\n    return y * 2",
    "return_broken_value": ("with Manager():\n    return ext(x + 1)", {"graphs": 1}),
    "nullcontext": "with contextlib.nullcontext(3) as n:\n    y = x + 1\n    ext(y)\n    y = y * n\nreturn y - 1",
    "suppress_nothing": "with contextlib.suppress(KeyError):\n    y = x + 1\n    ext(y)\n    y = y * 2\nreturn y - 1",
    "redirect_stdout": """
        with contextlib.redirect_stdout(io.StringIO()) as out:
            y = x + 1
            ext(y)
            y = y * 2
        return y - 1
        """,
    "lock": "with LOCK:\n    y = x + 1\n    ext(y)\n    y = y * 2\nreturn y - 1, LOCK.locked()",
    "exit_stack": """
        with contextlib.ExitStack() as stack:
            stack.enter_context(Manager('a'))
            y = x + 1
            ext(y)
            stack.callback(note, 'callback')
            y = y * 2
        return y - 1
        """,
    "closing": """
        with contextlib.closing(Closer()) as c:
            y = x + 1
            ext(y)
            y = y * 2
        return y - 1, c.closed
        """,
    "manager_in_loop": "for i in range(3):\n    with Manager(str(i)):\n        x = x + 1\n        ext(i)\nreturn x * 2",
    "break_leaves_loop_and_with": """
        for i in range(3):
            with Manager(str(i)):
                x = x + 1
                if ext(i) == 1:
                    break
        return x * 2
        """,
    "continue_leaves_with": """
        for i in range(3):
            with Manager(str(i)):
                x = x + 1
                if ext(i) == 1:
                    continue
                x = x * 3
        return x * 2
        """,
    "values_on_stack": "with Manager() as m:\n    y = [x + 1, ext(2), x * 2]\nreturn y",
    "decorated_function": """
        @generated('d')
        def inner(v):
            v = v + 1
            ext(v)
            return v * 2
        return inner(x) - 1
        """,
    "warnings_caught": """
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            y = x + 1
            ext(y)
            y = y * 2
        return y
        """,
}


class Closer:
    closed = False

    def close(self):
        note("close")
        self.closed = True


LOCK = threading.Lock()


def bounds(row, **common):
    body, own = row if isinstance(row, tuple) else (row, {})
    return body, {**common, **own}


# The last step of a generator that was made real is CPython's.
MADE_REAL = ("generator_manager", "generator_manager_tensor", "nested_kinds", "decorated_function")
LOOSE = ("manager_in_loop", "break_leaves_loop_and_with", "continue_leaves_with", "exit_stack", "warnings_caught", "lock", "redirect_stdout")
breaks.table(
    {n: bounds(r, graphs=(2, 6), settled=2) if n in LOOSE else bounds(r, graphs=(2, 3)) if n in MADE_REAL else r for n, r in PLAIN.items()}, globals()
)

# ---- torch's own contexts: what the opaque call sees is in the log ----

CONTEXTS = {
    "no_grad": "with torch.no_grad():\n    y = x * 2\n    ext(y)\n    y = y * 3\nreturn y, (x * 2)",
    "no_grad_after": "with torch.no_grad():\n    y = x * 2\nz = ext(x * 3)\nreturn y, z * x",
    "enable_grad_inside": """
        with torch.no_grad():
            y = x * 2
            with torch.enable_grad():
                z = x * 3
                ext(z)
                z = z * x
            y = y * 2
        return y, z
        """,
    "set_grad_enabled": """
        with torch.set_grad_enabled(False):
            y = x * 2
            ext(y)
            y = y * 3
        return y, x * 2
        """,
    "set_grad_enabled_call": """
        torch.set_grad_enabled(False)
        y = x * 2
        ext(y)
        y = y * x
        torch.set_grad_enabled(True)
        return y, x * 3
        """,
    "grad_mode_left_changed": "torch.set_grad_enabled(False)\ny = x * 2\next(y)\nreturn y * x",
    "no_grad_object_kept": "g = torch.no_grad()\ny = x * 2\next(y)\nwith g:\n    y = y * x\nreturn y, x * 3",
    "no_grad_object_twice": """
        g = torch.no_grad()
        with g:
            y = x * 2
            ext(y)
            y = y * x
        z = x * 3
        with g:
            z = z * x
            ext(z)
        return y, z * x
        """,
    "no_grad_decorator": """
        @torch.no_grad()
        def inner(v):
            v = v * 2
            ext(v)
            return v * x
        return inner(x), x * 3
        """,
    "no_grad_through_generator": "with grad_off():\n    y = x * 2\n    ext(y)\n    y = y * x\nreturn y, x * 3",
    "no_grad_error": """
        try:
            with torch.no_grad():
                y = x * 2
                boom(KeyError)
        except KeyError:
            y = x * 3
        return y * x
        """,
    "autocast": """
        with torch.autocast('cpu', dtype=torch.bfloat16):
            y = x.reshape(3, 1) @ x.reshape(1, 3)
            ext(y)
            z = y @ y
        return y, z, x.reshape(3, 1) @ x.reshape(1, 3)
        """,
    "autocast_nested_off": """
        with torch.autocast('cpu', dtype=torch.bfloat16):
            y = x.reshape(3, 1) @ x.reshape(1, 3)
            with torch.autocast('cpu', enabled=False):
                ext(y)
                z = y.float() @ y.float()
        return y, z
        """,
    "nested_four": """
        with torch.no_grad(), Manager('a'), torch.enable_grad(), Manager('b'):
            y = x * 2
            ext(y)
            y = y * x
        return y, x * 3
        """,
    "return_in_no_grad": "with torch.no_grad():\n    y = x * 2\n    ext(y)\n    return y * x",
    "loop_in_no_grad": """
        y = x
        with torch.no_grad():
            for _ in range(3):
                y = y * 2
                ext(y)
        return y * x
        """,
    "no_grad_in_loop": """
        y = x
        for _ in range(3):
            with torch.no_grad():
                y = y * 2
                ext(y)
        return y * x
        """,
    "profiler_mark": "with torch.profiler.record_function('part'):\n    y = x * 2\n    ext(y)\n    y = y * x\nreturn y",
    "device_context": "with torch.device('cpu'):\n    y = x * 2\n    ext(y)\n    y = y + torch.ones(3)\nreturn y",
}
breaks.table(
    {
        n: bounds(
            r, graphs=(2, 5) if "loop" in n or n in ("no_grad_object_twice",) else 2, settled=2 if "loop" in n or n == "grad_mode_left_changed" else 1
        )
        for n, r in CONTEXTS.items()
    },
    globals(),
    lambda: (t(3, grad=True),),
)
for c in breaks.cases:
    if c.name in ("device_context", "profiler_mark"):
        c.share, c.graphs = 0.0, None
    if c.name in ("no_grad_through_generator", "autocast", "autocast_nested_off"):
        c.graphs = (2, 3)


@scenario(graphs=2)
def inference_mode():
    def fn(x):
        with torch.inference_mode():
            y = x * 2
            ext(y)
            y = y * 3
        return y

    return Setup(fn, lambda: (t(3),))


# ---- exceptions raised by the broken call ----

ERRORS = {
    "error_leaves": "with Manager():\n    y = x + 1\n    boom(KeyError, 'k')\nreturn y",
    "error_swallowed": """
        with Manager(swallow=(KeyError,)) as m:
            y = x + 1
            boom(KeyError, 'k')
            y = y * 100
        return y * 2, m.state
        """,
    "error_swallowed_by_outer": """
        with Manager('a', swallow=(KeyError,)):
            with Manager('b'):
                y = x + 1
                boom(KeyError, 'k')
        return y * 2
        """,
    "error_swallowed_by_inner": """
        with Manager('a'):
            with Manager('b', swallow=(KeyError,)):
                y = x + 1
                boom(KeyError, 'k')
            y = y * 2
        return y - 1
        """,
    "error_not_swallowed": """
        with Manager('a', swallow=(ValueError,)):
            y = x + 1
            boom(KeyError, 'k')
        return y * 2
        """,
    "error_two_items": """
        with Manager('a', swallow=(KeyError,)), Manager('b'):
            y = x + 1
            boom(KeyError, 'k')
        return y * 2
        """,
    "error_generator_manager": """
        with generated('g', swallow=True):
            y = x + 1
            boom(KeyError, 'k')
        return y * 2
        """,
    "error_generator_manager_leaves": "with generated('g'):\n    y = x + 1\n    boom(KeyError, 'k')\nreturn y * 2",
    "error_generator_manager_other": """
        with generated('g', swallow=True):
            y = x + 1
            boom(ValueError, 'k')
        return y * 2
        """,
    "error_suppress": "with contextlib.suppress(KeyError):\n    y = x + 1\n    boom(KeyError, 'k')\nreturn y * 2",
    "error_suppress_other": """
        with contextlib.suppress(KeyError):
            y = x + 1
            boom(ValueError, 'k')
        return y * 2
        """,
    "error_opaque_manager": "with OpaqueManager():\n    y = x + 1\n    boom(KeyError, 'k')\nreturn y * 2",
    "error_opaque_manager_leaves": "with OpaqueManager():\n    y = x + 1\n    boom(ValueError, 'k')\nreturn y * 2",
    "error_raised_in_trace_opaque_exit": "with OpaqueManager():\n    y = x + 1\n    raise KeyError('k')\nreturn y * 2",
    "error_raised_in_trace_opaque_exit_leaves": "with OpaqueManager():\n    y = x + 1\n    raise ValueError('k')\nreturn y * 2",
    "error_of_break_raised_in_trace": "e = ext(KeyError('k'))\nwith OpaqueManager():\n    y = x + 1\n    raise e\nreturn y * 2",
    "error_raised_by_trace_opaque_exit": "with OpaqueManager():\n    y = x + 1\n    {}['k']\nreturn y * 2",
    "error_in_enter": """
        y = x + 1
        try:
            with BadEnter():
                y = y * 100
        except ValueError:
            y = y * 2
        return y
        """,
    "error_in_exit": """
        y = x + 1
        try:
            with BadExit():
                y = y * 2
        except ValueError:
            y = y * 3
        return y
        """,
    "error_in_exit_after_error": """
        y = x + 1
        try:
            with BadExit():
                boom(KeyError, 'k')
        except ValueError as e:
            y = y * 3
            kind = type(e.__context__).__name__
        return y, kind
        """,
    "error_after_break": """
        with Manager():
            y = x + 1
            ext(y)
            y = y * 2
            raise KeyError('late')
        return y
        """,
    "error_after_break_swallowed": """
        with Manager(swallow=(KeyError,)):
            y = x + 1
            ext(y)
            y = y * 2
            raise KeyError('late')
        return y * 3
        """,
    "error_exit_stack": """
        with contextlib.ExitStack() as s:
            s.enter_context(Manager('a', swallow=(KeyError,)))
            s.enter_context(Manager('b'))
            y = x + 1
            boom(KeyError, 'k')
        return y * 2
        """,
    "error_value_on_stack": """
        with Manager(swallow=(KeyError,)):
            y = x + 1
            z = [y * 2, boom(KeyError, 'k'), y * 3]
        return y * 2
        """,
}


class BadEnter:
    def __enter__(self):
        note("enter")
        boom(ValueError, "enter")

    def __exit__(self, *exc):
        note("never")


class BadExit:
    def __enter__(self):
        note("enter")

    def __exit__(self, *exc):
        note("exit", exc[0] and exc[0].__name__)
        boom(ValueError, "exit")


breaks.table({n: bounds(r, graphs=(1, 3)) for n, r in ERRORS.items()}, globals())
for c in breaks.cases:
    if c.name in ("error_value_on_stack", "error_exit_stack"):
        c.settled = 2

test = breaks.as_test()
