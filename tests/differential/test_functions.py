"""Argument kinds, defaults, calls, closures and cells."""

import functools
import re
import types

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario


@case(lambda: (t(3), t(3, seed=1)), ops=["add"])
def two_tensors(x, y):
    return x + y


@case(lambda: ((t(3), 2), {"k": 3}))
def keyword_only(x, n, *, k=5):
    return x * n + k


@case(lambda: ((t(3),), {}))
def defaults(x, n=4, *, k=5):
    return x * n + k


@case(lambda: (t(3), 1, 2, 3))
def star_args(x, *rest):
    return x * sum(rest), rest


@case(lambda: ((t(3),), {"a": 2, "b": t(3, seed=1)}))
def star_kwargs(x, **kw):
    return x * kw["a"] + kw["b"], kw


@case(lambda: ((t(3), 2), {"c": 4}))
def positional_only(a, b, /, c=1, *d, e=7, **f):
    return a * b + c + e, d, f


@case(lambda: (t(3),))
def inner_call_kinds(x):
    def g(a, b, /, c, *d, e=2, **f):
        return a * b + c * e, d, f

    return g(x, 1, c=3), g(x, 2, 3, 4, 5, e=6, z=7), g(*[x, 2, 3], **{"e": 4})


@case(lambda: (t(3),))
def inner_call_error_is_caught(x):
    def g(a, b):
        return a

    try:
        g(x)
    except TypeError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def too_many_arguments_caught(x):
    def g(a, b=1):
        return a

    try:
        g(x, 1, 2)
    except TypeError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def unexpected_keyword_caught(x):
    def g(a):
        return a

    try:
        g(x, q=2)
    except TypeError as error:
        return x + 1, error.args


@case(lambda: (t(3),))
def duplicate_keyword_caught(x):
    def g(**kw):
        return kw

    try:
        g(a=1, **{"a": 2})
    except TypeError as error:
        return x + 1, error.args


@case(lambda: (t(3),))
def multiple_values_caught(x):
    def g(a, b=1):
        return a

    try:
        g(x, a=2)
    except TypeError as error:
        return x + 1, error.args


@case(lambda: (t(3),))
def wrong_call_raises(x):
    def g(a, b):
        return a

    return g(x.sin())


@case(lambda: (t(3),))
def recursion(x):
    def fact(n):
        return 1 if n < 2 else n * fact(n - 1)

    return x * fact(5)


@case(lambda: (t(3),))
def mutable_default(x):
    def g(a, seen=[]):  # noqa: B006
        seen.append(a)
        return len(seen)

    return x * g(1) * g(2) * g(3)


@scenario(captures=(1, 1))
def shared_mutable_default():
    def g(a, seen=[]):  # noqa: B006
        seen.append(a)
        return len(seen)

    def f(x):
        return x * g(1)

    g.__defaults__[0].clear()
    return Setup(f, lambda: (t(3),), watch=lambda: g.__defaults__)


@scenario()
def closure_read():
    w, k = t(3, seed=3), 4

    def f(x):
        return x * w + k

    return Setup(f, lambda: (t(3),))


@scenario(captures=(1, 1))
def closure_counter():
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    return Setup(f, lambda: (t(3),), watch=lambda: n)


@scenario()
def closure_write_only():
    last = None

    def f(x):
        nonlocal last
        last = x * 2
        return x + 1

    return Setup(f, lambda: (t(3),), watch=lambda: last)


@scenario(after_change=(1,))
def closure_rebound():
    k = 2

    def f(x):
        return x * k

    def change():
        nonlocal k
        k = 5

    return Setup(f, lambda: (t(3),), changes=[change])


@scenario(after_change=(None,))
def closure_unassigned_later():
    k = 2

    def f(x):
        return x * k

    def change():
        nonlocal k
        del k

    return Setup(f, lambda: (t(3),), changes=[change])


@case(lambda: (t(3),))
def unbound_local(x):
    x = x + 1
    if x.shape[0] > 100:
        y = 1
    return x + y


@case(lambda: (t(3),))
def unbound_cell_caught(x):
    def g():
        return late

    try:
        g()
    except NameError as error:
        said = str(error)
    late = x + 1
    return g(), said


@case(lambda: (t(3),))
def cell_shared_by_two(x):
    n = 0

    def up():
        nonlocal n
        n += 1
        return n

    def get():
        return n

    up()
    up()
    return x * get() + up()


@case(lambda: (t(3),))
def returns_closure(x):
    y = x * 2

    def g(z, k=3):
        return y + z * k

    return g, y


@case(lambda: (t(3),))
def returns_two_closures_of_one_cell(x):
    n = 0

    def up():
        nonlocal n
        n += 1

    def get():
        return n

    up()
    return up, get, x + n


@case(lambda: (t(3),))
def lambda_in_loop_late_binding(x):
    fs = [lambda a: a * i for i in range(3)]
    return [f(x) for f in fs]


@case(lambda: (t(3),))
def lambda_default_binding(x):
    return [f(x) for f in [lambda a, i=i: a * i for i in range(3)]]


@case(lambda: (t(3),))
def partials(x):
    def g(a, b, c=1):
        return a * b + c

    p = functools.partial(g, x, c=5)
    q = functools.partial(p, 2)
    return p(3), q(), q(c=9)


@scenario()
def partial_is_compiled():
    def g(a, b, c=1):
        return a * b + c

    return Setup(functools.partial(g, c=4), lambda: (t(3), 2))


@scenario()
def decorated_with_wraps():
    def deco(fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            return fn(*args, **kwargs) * 2

        return inner

    @deco
    def f(x, y=3):
        return x + y

    return Setup(f, lambda: (t(3),))


@case(lambda: (t(3),))
def decorator_inside(x):
    def twice(fn):
        @functools.wraps(fn)
        def inner(*a):
            return fn(fn(*a))

        return inner

    @twice
    def g(a):
        return a * 3

    return g(x), g.__name__


@case(lambda: ([t(3), 2],))
def unpacking(pair):
    x, n = pair
    (a, b), *c = [(x, n), 3, 4]
    first, *middle, last = range(5)
    return x * n, a, b, c, first, middle, last


@case(lambda: (t(3),))
def wrong_unpack_caught(x):
    said = []
    for items in ([1], [1, 2, 3]):
        try:
            a, b = items
        except ValueError as error:
            said.append(str(error))
    return x + 1, said


@case(lambda: (t(3), 3))
def walrus_and_chained_compare(x, n):
    if (m := n + 1) > 2 and 1 < m < 10:
        return x * m
    return x


@case(lambda: (t(3),))
def returns_argument(x):
    return x, x + 1, x


@case(lambda: (t(3), [1, 2]))
def returns_same_list_twice(x, items):
    made = [x]
    return made, made, items, items, (made, x + 1)


@case(lambda: (5, "a"), graphs=0)
def no_tensor_at_all(n, s):
    return s * n


@case(lambda: (t(3), None))
def none_argument(x, mask):
    return x + 1 if mask is None else x * mask


@scenario(after_change=(1,))
def none_then_tensor():
    state = {"mask": None}

    def f(x, mask):
        return x + 1 if mask is None else x * mask

    return Setup(f, lambda: (t(3), state["mask"]), changes=[lambda: state.update(mask=t(3, seed=4))])


@case(lambda: (t(3), True, 2.5, "relu", (1, 2), 3 + 4j))
def constants_of_all_kinds(x, flag, scale, name, pair, c):
    y = x * scale if flag else x
    return getattr(torch, name)(y), pair, c, name, flag


@scenario()
def method_of_object():
    class Scale:
        def __init__(self, k):
            self.k = k

        def run(self, x):
            return x * self.k

    s = Scale(3)
    return Setup(s.run, lambda: (t(3),), watch=lambda: s)


@scenario()
def static_and_class_methods():
    class A:
        k = 3

        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def c(cls, x):
            return x * cls.k

    def f(x):
        return A.s(x), A.c(x), A().s(x), A().c(x)

    return Setup(f, lambda: (t(3),))


@case(lambda: (t(3),))
def functions_as_values(x):
    table = {"sin": torch.sin, "double": lambda a: a * 2, "relu": torch.nn.functional.relu}
    return {k: f(x) for k, f in table.items()}


@case(lambda: (t(3),))
def returns_bound_method(x):
    return x.sin, x.cos()


@case(lambda: (t(3),))
def deep_inline(x):
    def go(x, n):
        return x if n == 0 else go(x + 1, n - 1)

    return go(x, 50)


@scenario()
def c_methods_leave():
    pattern, items = re.compile("a+"), [5]
    left = []

    def f(x):
        left.extend([pattern.search, dict.fromkeys, items.__len__, "a".join, int.from_bytes, types.MethodType(len, items)])
        return x + 1

    def use():
        search, fromkeys, length, join, from_bytes, method = left[-6:]
        return search("baa").span(), fromkeys([1]), length(), join("xy"), from_bytes(b"a", "big"), method(), method.__self__ is items

    return Setup(f, lambda: (t(3),), watch=use)


@case(lambda: (t(3),))
def attributes_on_function(x):
    def g(a):
        g.calls += 1
        return a * g.calls

    g.calls = 0
    return g(x) + g(x), g.calls


test_functions = cases.as_test(__name__)
