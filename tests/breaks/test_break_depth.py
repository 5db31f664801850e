"""Breaks in inlined callees: one break is two graphs at any depth, and every frame of the chain goes on with its values."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import functools

import other_module
import torch
from harness import Breaks, Setup, boom, ext, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


def leaf(v):
    v = v + 1
    ext(v)
    return v * 2


def leaf_first(v):
    ext(v)
    return v * 2


def leaf_last(v):
    v = v * 2
    return ext(v)


def leaf_only(v):
    return ext(v)


def two(v):
    w = v * 3
    r = leaf(w)
    return r + w


def three(v):
    w = v - 1
    r = two(w)
    return r * w


def four(v):
    w, u = v / 2, v * 5
    r = three(w)
    return r - w + u


def deep(n, v):
    w = v + n
    return leaf(w) if n == 0 else deep(n - 1, w) + w


def failing(v, error=KeyError):
    v = v + 1
    boom(error, 1)
    return v


def fails_two(v):
    w = v * 3
    return failing(w) + w


def fails_three(v):
    w = v - 1
    return fails_two(w) * w


def catching(v):
    w = v * 3
    try:
        return failing(w)
    except KeyError:
        return w + 5


def catching_two(v):
    w = v * 3
    try:
        return fails_two(w)
    except KeyError:
        return w + 5


def catching_three(v):
    w = v * 3
    try:
        return fails_three(w)
    except KeyError:
        return w + 5


def finally_two(v):
    w = v * 3
    try:
        return fails_two(w)
    finally:
        note("finally")


def generator(v):
    for _ in range(2):
        v = leaf(v)
        yield v


def defaulted(v, scale=2, *, shift=1):
    v = v * scale
    ext(v)
    return v + shift


def star(*args, **kwargs):
    v = args[0] + args[1]
    ext(v)
    return v * kwargs["k"]


def returns_nothing(v):
    v = v + 1
    ext(v)


def returns_pair(v):
    v = v + 1
    ext(v)
    return v, v * 2


def wrapper(fn):
    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        note("before")
        r = fn(*args, **kwargs)
        note("after")
        return r * 2

    return wrapped


@wrapper
def wrapped_leaf(v):
    v = v + 1
    ext(v)
    return v - 3


class Thing:
    """Every special method of it breaks in the middle."""

    def __init__(self, v, quiet=True):
        self.v = v * 2
        if not quiet:
            ext(v)
            self.v = self.v + 1

    def method(self, w):
        w = w + self.v
        ext(w)
        return w * 2

    @classmethod
    def made(cls, v):
        v = v + 1
        ext(v)
        return cls(v)

    @staticmethod
    def static(v):
        v = v + 1
        ext(v)
        return v * 2

    @property
    def prop(self):
        w = self.v + 1
        ext(w)
        return w * 2

    @prop.setter
    def prop(self, w):
        w = w + 1
        ext(w)
        self.v = w * 2

    @prop.deleter
    def prop(self):
        self.v = self.v + 1
        ext(self.v)
        self.v = self.v * 2

    @functools.cached_property
    def cached(self):
        w = self.v + 1
        ext(w)
        return w * 2

    def __enter__(self):
        self.v = self.v + 1
        ext(self.v)
        self.v = self.v * 2
        return self.v

    def __exit__(self, *exc):
        self.v = self.v + 1
        ext(exc[0] and exc[0].__name__)
        self.v = self.v * 2
        return exc[0] is KeyError

    def __add__(self, w):
        return self.method(w)

    def __radd__(self, w):
        return self.method(w)

    def __iadd__(self, w):
        self.v = self.method(w)
        return self

    def __neg__(self):
        return -self.method(self.v)

    def __getitem__(self, i):
        return self.method(self.v) * i

    def __setitem__(self, i, w):
        self.v = self.method(w) * i

    def __delitem__(self, i):
        self.v = self.method(self.v) * i

    def __contains__(self, w):
        self.v = self.method(self.v)
        return w == 2

    def __eq__(self, w):
        self.v = self.method(self.v)
        return True

    def __lt__(self, w):
        return self.method(w)

    def __len__(self):
        self.v = self.method(self.v)
        return 3

    def __bool__(self):
        self.v = self.method(self.v)
        return True

    def __call__(self, w, k=1):
        return self.method(w) * k

    def __iter__(self):
        self.v = self.method(self.v)
        return iter([1, 2])

    def __hash__(self):
        return 3

    def __str__(self):
        self.v = self.method(self.v)
        return "thing"

    def __format__(self, spec):
        self.v = self.method(self.v)
        return "thing" + spec

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.method(self.v)

    def __setattr__(self, name, value):
        if name == "slow":
            value = self.method(value)
        object.__setattr__(self, name, value)

    def __delattr__(self, name):
        ext(name)
        object.__delattr__(self, name)


class Steps:
    def __init__(self, v):
        self.v, self.n = v, 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 2:
            raise StopIteration
        self.n += 1
        self.v = self.v + 1
        ext(self.v)
        return self.v * 2


class Base:
    def run(self, v):
        v = v + 1
        ext(v)
        return v * 2


class Derived(Base):
    def run(self, v):
        w = v * 3
        return super().run(w) + w


class Described:
    class Field:
        def __get__(self, instance, owner):
            w = instance.w + 1
            ext(w)
            return w * 2

        def __set__(self, instance, value):
            w = value + 1
            ext(w)
            instance.w = w * 2

    field = Field()

    def __init__(self, w):
        self.w = w


# ---- one break, two graphs ----

TWO_GRAPHS = {
    "depth_0": "y = x + 1\next(y)\nreturn y * 2",
    "depth_1": "y = x + 1\nreturn leaf(y) * y",
    "depth_2": "y = x + 1\nreturn two(y) * y",
    "depth_3": "y = x + 1\nreturn three(y) * y",
    "depth_4": "y = x + 1\nreturn four(y) * y",
    "depth_10": ("y = x + 1\nreturn deep(9, y) * y", {"graphs": (2, 3)}),
    "break_first_in_callee": "y = x + 1\nreturn leaf_first(y) * y",
    "break_last_in_callee": "y = x + 1\nreturn leaf_last(y) * y",
    "break_is_the_callee": "y = x + 1\nreturn leaf_only(y) * y",
    "callee_as_statement": "y = x + 1\nreturns_nothing(y)\nreturn y * 2",
    "callee_returns_pair": "y = x + 1\na, b = returns_pair(y)\nreturn a * b",
    "callee_in_arguments": "return torch.add(x + 1, leaf(x * 3)) - torch.mul(x, 2)",
    "callee_keyword": "y = x + 1\nreturn defaulted(v=y, shift=3) * y",
    "callee_defaults": "y = x + 1\nreturn defaulted(y) * y",
    "callee_star": "y = x + 1\nreturn star(y, *[x], **{'k': 3}) * y",
    "callee_other_module": "y = x + 1\nreturn other_module.scaled_around_break(y) * y",
    "callee_through_other_module": "y = x + 1\nreturn other_module.through(leaf, y) * y",
    "callee_wrapped": "y = x + 1\nreturn wrapped_leaf(y) * y",
    "callee_partial": "y = x + 1\nf = functools.partial(defaulted, scale=5)\nreturn f(y) * y",
    "callee_closure": "y = x + 1\ndef inner(v):\n    w = v * y\n    ext(w)\n    return w + y\nreturn inner(x) * y",
    "callee_closure_writes": """
        y = x + 1
        def inner():
            nonlocal y
            y = y * 3
            ext(y)
            y = y + 5
        inner()
        return y * 2
        """,
    "callee_closure_two_levels": """
        y = x + 1
        def outer():
            z = y * 2
            def inner():
                nonlocal z
                z = z + y
                ext(z)
                z = z * 3
            inner()
            return z - y
        return outer() * y
        """,
    "callee_lambda": "y = x + 1\nf = lambda v: ext(v * 3) + y\nreturn f(y) * 2",
    "callee_method": "o = Thing(x)\nreturn o.method(x) * o.v",
    "callee_classmethod": "o = Thing.made(x)\nreturn o.v * 3",
    "callee_staticmethod": "o = Thing(x)\nreturn o.static(x) * o.v",
    "callee_super": "return Derived().run(x) * 2",
    "callee_property": "o = Thing(x)\nreturn o.prop * o.v",
    "callee_property_set": "o = Thing(x)\no.prop = x\nreturn o.v * 3",
    "callee_property_delete": ("o = Thing(x)\ndel o.prop\nreturn o.v * 3", {"graphs": 3}),  # __delattr__ breaks too
    "callee_cached_property": "o = Thing(x)\na = o.cached\nreturn a * o.cached, o.cached is a",
    "callee_descriptor_get": "o = Described(x + 1)\nreturn o.field * o.w",
    "callee_descriptor_set": "o = Described(x + 1)\no.field = x\nreturn o.w * 3",
    "callee_init": "y = x + 1\no = Thing(y, quiet=False)\nreturn o.v * y",
    "callee_call": "o = Thing(x)\nreturn o(x, k=3) * o.v",
    "callee_add": "o = Thing(x)\nreturn (o + x) * o.v",
    "callee_radd": "o = Thing(x)\nreturn (2.0 + o) * o.v",
    "callee_iadd": "o = Thing(x)\no += x\nreturn o.v * 3",
    "callee_neg": "o = Thing(x)\nreturn -o * o.v",
    "callee_getitem": "o = Thing(x)\nreturn o[3] * o.v",
    "callee_setitem": "o = Thing(x)\no[3] = x\nreturn o.v * 3",
    "callee_delitem": "o = Thing(x)\ndel o[3]\nreturn o.v * 3",
    "callee_contains": "o = Thing(x)\nr = 2 in o\nreturn o.v * 3, r",
    "callee_eq": "o = Thing(x)\nr = o == 3\nreturn o.v * 3, r",
    "callee_lt": "o = Thing(x)\nreturn (o < x) * o.v",
    "callee_len": "o = Thing(x)\nreturn len(o) * o.v",
    "callee_bool": "o = Thing(x)\nif o:\n    return o.v * 3\nreturn x",
    "callee_not": "o = Thing(x)\nr = not o\nreturn o.v * 3, r",
    "callee_iter": "o = Thing(x)\na, b = o\nreturn o.v * a * b",
    "callee_str": "o = Thing(x)\ns = str(o)\nreturn o.v * len(s)",
    "callee_format": "o = Thing(x)\ns = f'{o:abc}!'\nreturn o.v * len(s), s",
    "callee_getattr": "o = Thing(x)\nreturn o.anything * o.v",
    "callee_getattr_builtin": "o = Thing(x)\nreturn getattr(o, 'anything') * o.v",
    "callee_setattr": "o = Thing(x)\no.slow = x\nreturn o.slow * o.v",
    "callee_enter": "o = Enter(x)\nwith o as v:\n    y = v * 3\nreturn y + o.v",
    "callee_exit": "o = Exit(x)\nwith o:\n    y = x * 3\nreturn y + o.v",
    "callee_in_condition": "y = x + 1\nif leaf(y).shape[0] == 3:\n    y = y * 2\nreturn y",
    "callee_in_list": "y = x + 1\nreturn [y * 3, leaf(y), y - 2]",
    "callee_in_comprehension": ("y = x + 1\nr = [leaf(v) for v in (y,)]\nreturn r[0] * y", {"graphs": (2, 3)}),
    "callee_max_key": "y = x + 1\nr = max([3, 1], key=lambda v: leaf(y).shape[0] if v == 3 else 0)\nreturn y * r",
    "callee_of_map": "y = x + 1\nr = list(map(leaf, [y]))\nreturn r[0] * y",
    "callee_of_reduce": ("y = x + 1\nr = functools.reduce(lambda a, b: leaf(a) + b, [y, x])\nreturn r * y", {"graphs": (2, 3)}),
    "callee_of_sorted": """
        y = x + 1
        r = sorted([2, 1], key=lambda v: v if v == 2 else returns_nothing(y) or v)
        return y * r[1]
        """,
    "callee_of_next": "g = generator(x)\nr = next(g)\nreturn r * 3",
    "callee_of_callback": "y = x + 1\nreturn apply(lambda v: leaf(v) + y, y) * 2",
}


class Enter(Thing):
    def __exit__(self, *exc):
        self.v = self.v + 1


class Exit(Thing):
    def __enter__(self):
        self.v = self.v + 1


def apply(fn, v):
    w = v * 7
    return fn(w) - w


breaks.table(TWO_GRAPHS, globals())

# ---- several breaks, exceptions, loops ----

MORE = {
    "twice_at_depth": ("y = x + 1\nreturn leaf(leaf(y)) * y", dict(graphs=3)),
    "at_each_depth": (
        """
        def inner(v):
            v = v + 1
            ext(v)
            return v * 2
        y = x + 1
        ext(y)
        z = inner(y)
        ext(z)
        return z * y
        """,
        dict(graphs=4),
    ),
    "same_callee_three_times": ("y = leaf(x)\nz = leaf(y)\nw = leaf(z)\nreturn w * y", dict(graphs=(2, 4))),
    "two_breaks_in_callee": (
        """
        def inner(v):
            v = ext(v + 1)
            v = ext(v * 3)
            return v - 1
        return inner(x) * x
        """,
        dict(graphs=3),
    ),
    "caught_in_callee": ("y = x + 1\nreturn catching(y) * y", {}),
    "caught_two_up": ("y = x + 1\nreturn catching_two(y) * y", {}),
    "caught_three_up": ("y = x + 1\nreturn catching_three(y) * y", {}),
    "caught_in_frame_1": ("y = x + 1\ntry:\n    z = failing(y)\nexcept KeyError:\n    z = y * 2\nreturn z * y", {}),
    "caught_in_frame_2": ("y = x + 1\ntry:\n    z = fails_two(y)\nexcept KeyError:\n    z = y * 2\nreturn z * y", {}),
    "caught_in_frame_3": (
        """
        y = x + 1
        try:
            z = fails_three(y)
        except KeyError as e:
            z = y * 2
        return z * y
        """,
        {},
    ),
    "finally_on_the_way": (
        """
        y = x + 1
        try:
            z = finally_two(y)
        except KeyError as e:
            z = y * 2
        return z * y
        """,
        {},
    ),
    "with_on_the_way": ("o = Thing(x)\nwith o:\n    z = fails_two(x)\nreturn o.v * 3", dict(graphs=(3, 6))),
    "leaves_1": ("y = x + 1\nreturn failing(y) * y", dict(graphs=1)),
    "leaves_2": ("y = x + 1\nreturn fails_two(y) * y", dict(graphs=1)),
    "leaves_3": ("y = x + 1\nreturn fails_three(y) * y", dict(graphs=1)),
    "reraised_on_the_way": (
        """
        def inner(v):
            try:
                return failing(v)
            except KeyError as e:
                raise ValueError('inner') from e
        y = x + 1
        try:
            inner(y)
        except ValueError as e:
            c = e.__cause__
        return y * 2, type(c).__name__
        """,
        {},
    ),
    "error_after_break_in_callee": (
        """
        def inner(v):
            v = v + 1
            ext(v)
            raise KeyError(v.shape[0])
        y = x + 1
        try:
            inner(y)
        except KeyError as e:
            y = y * e.args[0]
        return y
        """,
        {},
    ),
    "leaves_after_break_in_callee": (
        """
        def inner(v):
            v = v + 1
            ext(v)
            raise KeyError(v.shape[0])
        y = x + 1
        return inner(y)
        """,
        dict(graphs=1, settled=2),
    ),
    "loop_in_callee": (
        """
        def inner(v):
            for i in range(3):
                v = v + 1
                ext(i)
            return v * 2
        y = x + 1
        return inner(y) * y
        """,
        dict(graphs=(2, 4), settled=2),
    ),
    "callee_in_loop": ("y = x + 1\nfor i in range(3):\n    y = leaf(y)\nreturn y * 2", dict(graphs=(2, 4), settled=2)),
    "deep_in_loop": ("y = x + 1\nfor i in range(3):\n    y = three(y)\nreturn y * 2", dict(graphs=(2, 4), settled=2)),
    "with_in_callee": (
        """
        def inner(v):
            with torch.no_grad():
                v = v + 1
                ext(v)
                v = v * 2
            return v
        y = x + 1
        return inner(y) * y
        """,
        {},
    ),
    "no_grad_around_callee": ("y = x + 1\nwith torch.no_grad():\n    z = leaf(y)\nreturn z * y", {}),
    "iterator_in_caller_half_way": (
        """
        y = x + 1
        it = iter([1, 2, 3])
        next(it)
        z = leaf(y) * next(it)
        return z * next(it)
        """,
        {"graphs": (2, 4)},
    ),
    "generator_in_caller_half_way": (
        """
        y = x + 1
        g = numbers()
        next(g)
        z = leaf(y) * next(g)
        return z * next(g)
        """,
        {"graphs": (2, 4)},
    ),
    "user_iterator_next": ("t = x * 0\nfor v in Steps(x):\n    t = t + v\nreturn t", dict(graphs=(2, 5), settled=2)),
    "generator_over_leaf": (
        """
        t = x * 0
        for v in generator(x):
            t = t + v
        return t
        """,
        dict(graphs=(2, 5), settled=2),
    ),
    "recursion": (
        """
        def down(n, v):
            if n == 0:
                return ext(v)
            v = v + 1
            r = down(n - 1, v)
            return r * 2
        return down(3, x)
        """,
        dict(graphs=2),
    ),
    "recursion_breaks_each_level": (
        """
        def down(n, v):
            v = v + 1
            ext(n)
            return v if n == 0 else down(n - 1, v) * 2
        return down(3, x)
        """,
        dict(graphs=(2, 6), settled=2),
    ),
    "data_branch_in_callee": (
        """
        def pick(v):
            if v.sum() > 0:
                return v * 2
            return v * 3
        y = x + 1
        return pick(y) - y
        """,
        {},
    ),
    "item_in_callee": ("def norm(v):\n    return v / v.sum().item()\ny = x + 1\nreturn norm(y) - y", {}),
    "nested_break_in_argument_of_callee": ("return two(ext(x + 1)) + 1", dict(graphs=3)),
}


def numbers():
    yield 1
    yield 2
    yield 3


def with_defaults(row):
    body, own = row
    return body, {"graphs": (1, 3) if "try" in body or "catching" in body else 2, **own}


breaks.table({n: with_defaults(r) for n, r in MORE.items()}, globals())

# ---- modules ----


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 3)

    def forward(self, x):
        x = self.lin(x)
        ext(x)
        return x.relu()


class Middle(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.lin = inner, torch.nn.Linear(3, 3)

    def forward(self, x):
        y = self.lin(x)
        return self.inner(y) + y


def module(levels):
    torch.manual_seed(3)
    m = Inner()
    for _ in range(levels):
        m = Middle(m)
    return m


def add_module(levels):
    breaks.add(f"module_depth_{levels}", lambda: Setup(module(levels), lambda: (t(2, 3),)))
    breaks.add(
        f"module_depth_{levels}_backward",
        lambda: Setup(m := module(levels), lambda: (t(2, 3),), after=lambda r: r.sum().backward(), watch=lambda: [p.grad for p in m.parameters()]),
    )


for levels in range(4):
    add_module(levels)


@scenario(graphs=(2, 6), settled=2)
def sequential_with_breaks():
    torch.manual_seed(3)
    return Setup(torch.nn.Sequential(*(Inner() for _ in range(4))), lambda: (t(2, 3),))


@scenario()
def module_hooks():
    torch.manual_seed(3)
    m = torch.nn.Linear(3, 3)
    m.register_forward_pre_hook(lambda module, args: note("pre"))
    m.register_forward_hook(lambda module, args, out: ext(out * 2))

    def fn(x):
        return m(x + 1) * 3

    return Setup(fn, lambda: (t(2, 3),))


@scenario(graphs=(2, 3), share=0.0)
def function_called_in_eager_part_is_captured():
    """What the opaque code calls back is captured itself."""

    def callback(v):
        return v * 3 + 1

    def fn(x):
        y = x + 1
        z = list(Opaque([y], callback))
        return z[0] * 2

    return Setup(fn, lambda: (t(3),))


class Opaque:
    def __init__(self, items, fn):
        self.items, self.fn = items, fn

    @torch.compiler.disable(recursive=False)
    def __iter__(self):
        return iter([self.fn(v) for v in self.items])


test = breaks.as_test()
