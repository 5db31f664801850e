"""Functions: binding and its errors, defaults, closures, attributes, code swaps, recursion, names that are not bound."""

import functools
import sys

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


def error_of(call):
    try:
        call()
    except (TypeError, NameError, RecursionError, ValueError) as error:
        return type(error).__name__, error.args
    return None


# ---- binding ----


@case(lambda: (t(3),))
def missing_arguments(x):
    def one(a): ...
    def two(a, b): ...
    def three(a, b, c): ...
    def keywords(*, k, m): ...
    def one_keyword(a, *, k): ...
    def both(a, b=1, *, k, m=2): ...

    out = [
        error_of(lambda: one()),
        error_of(lambda: two()),
        error_of(lambda: two(1)),
        error_of(lambda: three()),
        error_of(lambda: three(1)),
        error_of(lambda: keywords()),
        error_of(lambda: keywords(k=1)),
        error_of(lambda: one_keyword(1)),
        error_of(lambda: one_keyword()),
        error_of(lambda: both()),
        error_of(lambda: both(1)),
    ]
    return x + 1, out


@case(lambda: (t(3),))
def too_many_arguments(x):
    def none(): ...
    def one(a): ...
    def optional(a, b=1): ...
    def all_optional(a=1, b=2): ...
    def keyword_only(a, *, k=1): ...
    def two_keywords(a, *, k=1, m=2): ...

    out = [
        error_of(lambda: none(1)),
        error_of(lambda: none(1, 2)),
        error_of(lambda: one(1, 2)),
        error_of(lambda: one(1, 2, 3)),
        error_of(lambda: optional(1, 2, 3)),
        error_of(lambda: all_optional(1, 2, 3)),
        error_of(lambda: keyword_only(1, 2)),
        error_of(lambda: keyword_only(1, 2, k=3)),
        error_of(lambda: two_keywords(1, 2, 3, k=3, m=4)),
        error_of(lambda: none(1, k=2)),
    ]
    return x + 1, out


@case(lambda: (t(3),))
def wrong_keywords(x):
    def plain(a, b=1): ...
    def positional(a, b, /, c=1): ...
    def optional_positional(a=1, /): ...
    def rest(a, /, **kw):
        return a, kw

    out = [
        error_of(lambda: plain(1, c=2)),
        error_of(lambda: plain(1, a=2)),
        error_of(lambda: plain(1, 2, b=2)),
        error_of(lambda: plain(a=1, **{"a": 2})),
        error_of(lambda: plain(**{"a": 1}, **{"a": 2})),
        error_of(lambda: plain(1, **{3: 4})),
        error_of(lambda: plain(1, *3)),
        error_of(lambda: plain(1, **3)),
        error_of(lambda: plain(*None)),
        error_of(lambda: positional(1, b=2)),
        error_of(lambda: positional(a=1, b=2)),
        error_of(lambda: positional(1, 2, c=3, d=4)),
        error_of(lambda: optional_positional(a=2)),
        error_of(lambda: (lambda a: a)(b=1)),
        rest(1, a=2, b=3),
        error_of(lambda: rest(a=2)),
    ]
    return x + 1, out


class Thing:
    def __init__(self, a, *, k=1):
        self.a, self.k = a, k

    def method(self, n, m=2):
        return self.a + n + m

    @classmethod
    def made(cls, a):
        return cls(a)

    @staticmethod
    def plain(a):
        return a


@case(lambda: (t(3),))
def binding_errors_of_methods(x):
    thing = Thing(1)
    out = [
        error_of(lambda: Thing()),
        error_of(lambda: Thing(1, 2)),
        error_of(lambda: Thing(1, b=2)),
        error_of(lambda: thing.method()),
        error_of(lambda: thing.method(1, 2, 3)),
        error_of(lambda: Thing.method(1)),
        error_of(lambda: Thing.made()),
        error_of(lambda: thing.plain()),
        error_of(lambda: thing.plain(1, 2)),
        error_of(lambda: thing(1)),
        error_of(lambda: thing.method(1)(2)),
        error_of(lambda: thing.a(2)),
    ]
    return x + 1, out, thing.method(1), Thing.made(3).a


@case(lambda: (t(3),))
def errors_of_builtin_calls(x):
    out = [
        error_of(lambda: len()),
        error_of(lambda: len(1)),
        error_of(lambda: len([], [])),
        error_of(lambda: isinstance(1)),
        error_of(lambda: int("x")),
        error_of(lambda: "a".join([1])),
        error_of(lambda: sum("ab")),
        error_of(lambda: max([])),
        error_of(lambda: range(1, 2, 0)),
        error_of(lambda: abs("a")),
    ]
    return x + 1, out


@case(lambda: (t(3),))
def star_calls(x):
    def f(*args, **kw):
        return args, kw

    a, d = (1, 2), {"k": 3}
    return (
        f(*a, *[3, 4], 5, **d, z=1),
        f(*(i for i in range(2)), **{**d, "q": 4}),
        f(*"ab"),
        f(*d),
        f(*{1: 2}),
        f(**{}),
        x + 1,
    )


@case(lambda: (t(3),))
def evaluation_order_of_arguments(x):
    log = []

    def note(v):
        log.append(v)
        return v

    def f(*args, **kw):
        return len(args), sorted(kw)

    r = f(note(1), *note([2]), note(3), k=note(4), **note({"z": 5}))
    {note("a"): note("b"), note("c"): note("d")}  # noqa: B018
    note([0])[note(0)] = note("value")
    return x + 1, r, log


# ---- defaults ----


@scenario(after_change=(1, 1))
def defaults_changed_later():
    def g(a, b=2, *, k=3):
        return a * b + k

    def f(x):
        return g(x)

    def change():
        g.__defaults__ = (5,)

    def change_keyword():
        g.__kwdefaults__ = {"k": 7}

    return Setup(f, lambda: (t(3),), changes=(change, change_keyword))


@scenario(after_change=(1,))
def kwdefaults_mutated_in_place():
    def g(a, *, k=3):
        return a * k

    def f(x):
        return g(x)

    return Setup(f, lambda: (t(3),), changes=(lambda: g.__kwdefaults__.update(k=4),))


@scenario(after_change=(None, None))
def defaults_of_the_compiled_function_itself():
    def f(x, n=2, *, k=3):
        return x * n + k

    def change():
        f.__defaults__ = (5,)

    def drop():
        f.__defaults__ = None

    return Setup(f, lambda: (t(3),), changes=(change, drop))


@case(lambda: (t(3),))
def defaults_set_inside(x):
    def g(a, b=2, *, k=3):
        return a, b, k

    first = g(1)
    g.__defaults__ = (10, 20)
    g.__kwdefaults__ = {"k": 30}
    return x + 1, first, g(), g.__defaults__, g.__kwdefaults__


@case(lambda: (t(3),))
def default_expressions_run_once(x):
    log = []

    def note(v):
        log.append(v)
        return v

    def g(a=note(1), *, b=note([])):
        b.append(a)
        return b

    return g(), g(5), log, x + 1


# ---- attributes and code ----


@case(lambda: (t(3),))
def function_attributes(x):
    def g(a: int, b: "str" = "s") -> float:
        """Says so."""
        g.calls += 1
        return a

    g.calls = 0
    g.tag = [1]
    g(1)
    g(2)
    return (
        x + g.calls,
        g.__name__,
        g.__qualname__,
        g.__doc__,
        g.__annotations__,
        g.__defaults__,
        g.__module__,
        g.__dict__,
        hasattr(g, "missing"),
        getattr(g, "missing", 7),
        g.__code__.co_varnames,
        g,
    )


@case(lambda: (t(3),))
def function_attribute_deleted(x):
    def g(): ...

    g.tag = 1
    del g.tag
    return x + 1, error_of_attribute(lambda: g.tag), g.__dict__


def error_of_attribute(call):
    try:
        call()
    except AttributeError as error:
        return error.args
    return None


@case(lambda: (t(3),))
def renamed_function(x):
    def g(): ...

    g.__name__ = "other"
    g.__qualname__ = "a.other"
    g.__doc__ = "text"
    return x + 1, g, g.__name__, g.__qualname__, g.__doc__


@scenario(after_change=(1,))
def code_swapped():
    def g(a):
        return a * 2

    def h(a):
        return a * 3

    def f(x):
        return g(x)

    def change():
        g.__code__ = h.__code__

    return Setup(f, lambda: (t(3),), changes=(change,))


@scenario(after_change=(None,))
def code_of_compiled_swapped():
    def f(x):
        return x * 2

    def change():
        f.__code__ = (lambda x: x - 1).__code__

    return Setup(f, lambda: (t(3),), changes=(change,))


@case(lambda: (t(3),))
def wrapped_and_partial(x):
    def deco(n):
        def wrap(fn):
            @functools.wraps(fn)
            def inner(*args, **kw):
                return fn(*args, **kw) * n

            inner.depth = getattr(fn, "depth", 0) + 1
            return inner

        return wrap

    @deco(2)
    @deco(3)
    def g(a, b=1):
        """Doc."""
        return a + b

    part = functools.partial(g, b=2)
    return g(x), part(x), g.depth, g.__name__, g.__doc__, g.__wrapped__.__wrapped__(x)


# ---- closures ----


@case(lambda: (t(3),))
def nonlocal_in_three_levels(x):
    n = 1

    def a():
        nonlocal n
        n += 1

        def b():
            nonlocal n
            n *= 10

            def c():
                return n

            return c

        return b

    c = a()()
    return x * n, c(), n


@case(lambda: (t(3),))
def cells_made_before_they_are_bound(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    before = error_of(lambda: even(3))

    def odd(n):
        return False if n == 0 else even(n - 1)

    return x + 1, before, even(4), odd(4)


@case(lambda: (t(3),))
def deleted_cell(x):
    n = 1

    def get():
        return n

    first = get()
    del n
    return x + 1, first, error_of(get)


@case(lambda: (t(3),))
def cell_of_comprehension_and_lambda(x):
    fs = [lambda k=i: k + i for i in range(3)]  # noqa: B023
    gs = {name: (lambda: name) for name in "ab"}  # noqa: B023
    return x + 1, [f() for f in fs], [g() for g in gs.values()]


@case(lambda: (t(3),))
def closure_cells_read(x):
    n, m = 3, [1]

    def g():
        return n, m

    return x + 1, [cell.cell_contents for cell in g.__closure__], g.__code__.co_freevars


@case(lambda: (t(3),))
def parameter_that_is_a_cell(x):
    def outer(a, *rest, k=2, **kw):
        def inner():
            nonlocal a
            a += k
            return a, rest, kw

        return inner

    g = outer(1, 2, 3, z=4)
    return g(), g(), x + 1


# ---- recursion ----


@case(lambda: (t(3),))
def deep_recursion(x):
    def depth(n):
        return 0 if n == 0 else 1 + depth(n - 1)

    return x + depth(200)


@case(lambda: (t(3),), skip="*")
def endless_recursion(x):
    def forever(n):
        return forever(n + 1)

    try:
        forever(0)
    except RecursionError as error:
        return x + 1, error.args


@case(lambda: (t(3),), skip="*")
def endless_recursion_uncaught(x):
    def forever(n):
        return forever(n + 1)

    y = x + 1
    forever(y)


def nest(n, leaf, make=lambda inner: [inner]):
    for _ in range(n):
        leaf = make(leaf)
    return leaf


@case(lambda: (t(3), nest(300, 1)))
def nested_input_walked(x, deep):
    n = 0
    while isinstance(deep, list):
        deep = deep[0]
        n += 1
    return x + n


@case(lambda: (t(3),))
def nested_list_returned(x):
    made = x + 1
    for _ in range(150):
        made = [made]
    return made


# ---- names ----


@case(lambda: (t(3), 0))
def unbound_names(x, n):
    def unassigned():
        if n:
            value = 1
        return value

    def deleted():
        value = 1
        del value
        return value

    def free():
        def inner():
            return later

        got = error_of(inner)
        later = 1
        return got, later

    def deleting():
        del nothing  # noqa: F821
        nothing = 1  # noqa: F841

    def missing_global():
        return no_such_global  # noqa: F821

    def deleting_global():
        global no_such_global
        del no_such_global

    calls = (unassigned, deleted, deleting, missing_global, deleting_global)
    return x + 1, [error_of(f) for f in calls], free()


@case(lambda: (t(3),))
def unbound_name_leaves_the_function(x):
    y = x + 1
    return y + undefined  # noqa: F821


@case(lambda: (t(3),))
def lambda_forms(x):
    f = lambda *a, k=1, **kw: (a, k, kw)  # noqa: E731
    g = lambda: (yield)  # noqa: E731
    return f(1, k=2, z=3), (lambda n: n * 2)(x), (lambda: x)(), f.__name__, next(g())


@case(lambda: (t(3),))
def methods_as_values(x):
    thing = Thing(2)
    m = thing.method
    same = m == thing.method
    return m(1), same, m.__self__ is thing, m.__func__ is Thing.method, m.__name__, Thing.method(thing, 3), x + 1, m


@case(lambda: (t(3),))
def generic_calls_of_unbound_tensor_methods(x):
    return torch.Tensor.add(x, 1), (x.add)(1), sys.version_info >= (3, 11)


test_lang_functions = cases.as_test(__name__)
