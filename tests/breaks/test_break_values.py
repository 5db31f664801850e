"""Every live value crosses a break with its identity; dead ones are freed as in eager."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import collections
import dataclasses
import enum
import functools
import math
import os
import re
import tempfile
import textwrap
import types
import weakref

import torch
from harness import Breaks, Setup, boom, ext, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


class Box:
    def __init__(self, v=None):
        self.v = v

    def double(self):
        return self.v * 2


class Slots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@dataclasses.dataclass
class Data:
    a: object
    b: int = 2


class Named(collections.namedtuple("Named", "a b")):
    pass


class MyList(list):
    pass


class MyDict(dict):
    pass


class Color(enum.Enum):
    RED = 1


def plain(v):
    return v * 2


VALUES = {
    # aliases
    "list_in_two_places": "a = [x]\nb = {'k': a}\next(1)\na.append(x * 2)\nreturn a, b, b['k'] is a",
    "list_in_itself": "a = [x + 1]\na.append(a)\next(1)\nreturn a[1] is a, a[0] * 2",
    "dict_in_itself": "d = {'x': x + 1}\nd['d'] = d\next(1)\nreturn d['d'] is d, d['x'] * 2",
    "tensor_in_two_places": "y = x + 1\na = [y, y]\next(1)\nreturn a, a[0] is y, y * 2",
    "tuple_shared": "y = x + 1\na = (y, 1)\nb = [a, a]\next(1)\nreturn b, b[0] is a, y * 2",
    "object_shared": "o = Box(x + 1)\nl = [o, {'o': o}]\next(1)\no.v = o.v * 2\nreturn l, l[0] is o",
    "two_names": "a = b = [x + 1]\next(1)\na.append(2)\nreturn b, a is b, x * 2",
    "passed_to_break": "a = [x + 1]\nb = ext(a)\nb.append(x * 2)\nreturn a, a is b",
    "changed_by_break": "a = [x + 1]\nfill(a)\nreturn a[0] * a[1]",
    "object_changed_by_break": "o = Box(x + 1)\nreplace(o)\nreturn o.v * 3",
    "argument_and_local": "a = l\na.append(x + 1)\next(1)\na.append(x * 2)\nreturn a is l, len(l)",
    "argument_changed": "l.append(x + 1)\next(l)\nl[0] = x * 2\nreturn l",
    "argument_aliased_by_object": "o = Box(l)\next(1)\no.v.append(x * 2)\nreturn o, l",
    # containers
    "set": "s = {1, 2}\ny = x + 1\next(y)\ns.add(3)\nreturn y * len(s), s",
    "frozenset": "s = frozenset({1, 2})\ny = x + 1\next(y)\nreturn y * len(s), s",
    "deque": "d = collections.deque([x + 1], maxlen=2)\next(1)\nd.append(x * 2)\nd.append(x * 3)\nreturn d",
    "ordered_dict": "d = collections.OrderedDict(a=x + 1, b=2)\next(1)\nd.move_to_end('a')\nreturn d, d['a'] * 2",
    "defaultdict": "d = collections.defaultdict(list)\nd['a'].append(x + 1)\next(1)\nd['b'].append(x * 2)\nreturn d",
    "counter": "d = collections.Counter('aab')\ny = x + 1\next(y)\nd['a'] += 1\nreturn y * d['a'], d",
    "chain_map": "d = collections.ChainMap({'a': 1}, {'b': 2})\ny = x + 1\next(y)\nreturn y * d['b']",
    "namedtuple": "n = Named(x + 1, 2)\next(1)\nreturn n.a * n.b, n",
    "list_subclass": "l2 = MyList([x + 1])\next(1)\nl2.append(x * 2)\nreturn l2",
    "dict_subclass": "d = MyDict(a=x + 1)\next(1)\nd['b'] = x * 2\nreturn d",
    "nested": "d = {'a': [x + 1, {'b': (x, [2])}]}\next(1)\nd['a'][1]['b'][1].append(x * 2)\nreturn d",
    "slice": "s = slice(1, None)\ny = x + 1\next(y)\nreturn y[s] * 2, s",
    "range": "r = range(1, 4)\ny = x + 1\next(y)\nreturn y * r[1], r",
    "bytearray": "b = bytearray(b'ab')\ny = x + 1\next(y)\nb.append(3)\nreturn y * len(b), bytes(b)",
    "keys_view": "d = {'a': x + 1}\nk = d.keys()\next(1)\nd['b'] = x * 2\nreturn list(k), d",
    "values_view": "d = {'a': x + 1}\nv = d.values()\next(1)\nd['b'] = x * 2\nreturn list(v)",
    "items_view": "d = {'a': x + 1}\nv = d.items()\next(1)\nd['b'] = x * 2\nreturn list(v)",
    "views_compared": "d = {'a': 1}\nk, i = d.keys(), d.items()\ny = x + 1\next(y)\nreturn y * 2, k == {'a'}, {'a'} == k, i == {('a', 1)}, k == i",
    "mapping_proxy": "d = {'a': x + 1}\nm = types.MappingProxyType(d)\next(1)\nd['b'] = x * 2\nreturn m['b'] * m['a']",
    "keys_order": "d = {'b': 1, 'a': 2}\ndel d['b']\nd['b'] = x + 1\next(1)\nreturn list(d), d['b'] * 2",
    # objects
    "user_object": "o = Box(x + 1)\next(1)\nreturn o.v * 2, o",
    "user_object_new_attribute": "o = Box(x + 1)\next(1)\no.w = o.v * 2\nreturn o",
    "user_object_attribute_deleted": "o = Box(x + 1)\ny = o.v\ndel o.v\next(1)\nreturn hasattr(o, 'v'), y * 2",
    "slots": "o = Slots(x + 1)\next(1)\no.b = o.a * 2\nreturn o",
    "dataclass": "o = Data(x + 1)\next(1)\no.b = o.a * 2\nreturn o",
    "simple_namespace": "o = types.SimpleNamespace(a=x + 1)\next(1)\nreturn o.a * 2, o.a",
    "enum_member": "c = Color.RED\ny = x + 1\next(y)\nreturn y * c.value, c is Color.RED",
    "bound_method": "o = Box(x + 1)\nm = o.double\next(1)\nreturn m() * 2, m.__self__ is o",
    "bound_builtin_method": "l2 = [x + 1]\nadd = l2.append\next(1)\nadd(x * 2)\nreturn l2",
    "tensor_method": "y = x + 1\nm = y.add\next(1)\nreturn m(2) * 2",
    "partial": "p = functools.partial(torch.add, x + 1)\next(1)\nreturn p(2) * 2",
    "partial_user": "p = functools.partial(plain, x + 1)\next(1)\nreturn p() - 1",
    "module": "m = math\ny = x + 1\next(y)\nreturn y * m.floor(2.5)",
    "torch_function": "f = torch.mul\ny = x + 1\next(y)\nreturn f(y, 2)",
    "class": "c = Box\ny = x + 1\next(y)\nreturn c(y).double()",
    "class_made": "y = x + 1\nclass C:\n    k = 2\next(y)\nreturn y * 2, C",
    "function": "f = plain\ny = x + 1\next(y)\nreturn f(y)",
    "lambda": "f = lambda v: v * 2\ny = x + 1\next(y)\nreturn f(y)",
    "function_with_default": "y = x + 1\ndef f(v, w=y):\n    return v * w\next(1)\nreturn f(y), f.__defaults__[0] is y",
    "exception": "e = ValueError(x + 1, 2)\next(1)\nreturn e.args[0] * 2, e",
    "manager_object": "m = Manager(x)\ny = x + 1\next(y)\nwith m as v:\n    y = y * v\nreturn y",
    "pattern": "p = re.compile('a+')\ny = x + 1\next(y)\nreturn y * len(p.match('aab').group())",
    "dtype_device": "d, e = x.dtype, x.device\ny = x + 1\next(y)\nreturn y.to(d).to(e) * 2, d, e",
    "size": "s = x.shape\ny = x + 1\next(y)\nreturn y.reshape(s) * s[0], s",
    "generator_object_of_torch": "y = x + 1\next(y)\nreturn y + torch.rand(3)",
    "random_across": "a = torch.rand(3)\next(1)\nb = torch.rand(3)\nreturn a + b, x * 2",
    "weak_reference": "o = Box(x + 1)\nr = weakref.ref(o)\next(1)\nreturn r() is o, o.v * 2",
    # numbers and text
    "big_int": "n = 2 ** 100\ny = x + 1\next(y)\nreturn y * 2, n",
    "float_special": "n = [float('nan'), -0.0, float('inf')]\ny = x + 1\next(y)\nreturn y * 2, n",
    "complex_number": "n = 1 + 2j\ny = x + 1\next(y)\nreturn y * 2, n * n",
    "text": "s = 'a' * 3\ny = x + 1\next(y)\nreturn y * len(s), s",
    "none_and_ellipsis": "n = [None, ..., NotImplemented]\ny = x + 1\next(y)\nreturn y[..., None] * 2, n",
    # cells
    "cell_read_later": "y = x + 1\ndef f():\n    return y * 2\next(1)\nreturn f()",
    "cell_written_after_by_frame": "y = x + 1\ndef f():\n    return y * 2\next(1)\ny = x - 1\nreturn f()",
    "cell_written_after_by_inner": "y = x + 1\ndef f():\n    nonlocal y\n    y = y * 2\next(1)\nf()\nreturn y",
    "cell_written_before_and_after": """
        n = 1
        def f():
            nonlocal n
            n += 1
            return n
        f()
        y = x * n
        ext(n)
        f()
        return y * n
        """,
    "cell_empty_then_filled": "def f():\n    return late * 2\ny = x + 1\next(y)\nlate = y\nreturn f()",
    "cell_deleted": """
        y = x + 1
        def f():
            return y
        z = y * 2
        ext(z)
        del y
        try:
            f()
        except NameError:
            z = z * 3
        return z
        """,
    "cell_shared_by_two": """
        n = x + 1
        def get():
            return n
        def put(v):
            nonlocal n
            n = v
        ext(1)
        put(x * 3)
        return get() * 2
        """,
    "cell_of_argument": "def f():\n    return x * 2\next(1)\nx = x + 1\nreturn f()",
    "cell_in_break": "y = x + 1\ndef f():\n    nonlocal y\n    y = y + 1\n    return y\ncall(f)\nreturn y * 2",
    "cell_of_loop": """
        fs = []
        for i in range(3):
            def f():
                return i
            fs.append(f)
            ext(i)
        return x * sum(f() for f in fs)
        """,
    "returned_closure": "y = x + 1\ndef f():\n    return y\next(1)\ny = y * 2\nreturn f, f()",
    # tensors
    "view_and_base": "y = x + 1\nv = y[1:]\next(1)\nv.mul_(2)\nreturn y, v, y * 2",
    "base_changed_after": "y = x + 1\nv = y[1:]\next(1)\ny.mul_(2)\nreturn y, v",
    "inplace_before": "y = x + 1\nv = y[1:]\nv.add_(5)\next(y)\nreturn y * 2, v",
    "inplace_input": "x.add_(1)\next(x)\nx.mul_(2)\nreturn x + 1",
    "inplace_input_view": "v = x[1:]\nv.add_(1)\next(x)\nv.mul_(2)\nreturn x + 1, v",
    "inplace_by_break": "y = x + 1\nv = y.view(3, 1)\nzero(y)\nreturn v * 2 + y.sum()",
    "inplace_on_list_item": "l2 = [x + 1]\next(1)\nl2[0] += 1\nreturn l2, x * 2",
    "item_assignment": "y = x + 1\ny[0] = 5\next(y)\ny[1] = 7\nreturn y",
    "transposed": "y = (x + 1).reshape(3, 1).t()\next(y)\nreturn y * 2, y",
    "expanded": "y = (x + 1).reshape(3, 1).expand(3, 2)\next(y)\nreturn y * 2, y",
    "detached": "y = x.detach()\nz = y + 1\next(z)\nreturn y is x, z * 2, y",
    "split": "a, b, c = (x + 1).split(1)\next(a)\nreturn a * b + c",
    "out_argument": "y = torch.empty(3)\ntorch.add(x, 1, out=y)\next(y)\ntorch.mul(y, 2, out=y)\nreturn y",
    "attribute_on_tensor": "y = x + 1\ny.tag = 3\next(y)\nreturn y * y.tag, y.tag",
    # names
    "locals_after": "y = x + 1\next(y)\nz = y * 2\nreturn sorted(locals())",
    "locals_values": "n = 3\ny = x + 1\next(y)\nreturn locals()['n'] * y",
    "parameter_rebound": "x = x + 1\next(x)\nx = x * 2\nreturn x",
    "local_deleted": """
        y = x + 1
        z = y * 2
        del y
        ext(z)
        try:
            y
        except UnboundLocalError:
            z = z + 1
        return z
        """,
    "local_deleted_after": """
        y = x + 1
        ext(y)
        z = y * 2
        del y
        try:
            y
        except UnboundLocalError:
            z = z + 1
        return z
        """,
}


@torch.compiler.disable
def fill(a):
    a.append(a[0] * 1)


@torch.compiler.disable
def replace(o):
    o.v = o.v + 0


@torch.compiler.disable
def zero(y):
    y.zero_()


@torch.compiler.disable
def call(f):
    return f()


class Manager:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self.x + 1

    def __exit__(self, *exc):
        note("exit")


IN_BREAK = {
    "changed_by_break": 0.6,
    "object_changed_by_break": 0.6,
    "inplace_by_break": 0.6,
    "cell_in_break": 0.6,
    "locals_after": 0.0,
    "locals_values": 0.0,
}
WITH_LIST = {"args": lambda: (t(3), [t(3, seed=5)]), "parameters": "x, l"}


def value_row(name, body):
    return body, {"graphs": (1, 6), "settled": 2, "share": IN_BREAK.get(name, 1.0), **(WITH_LIST if name.startswith("argument") else {})}


breaks.table({f"value_{n}": value_row(n, r) for n, r in VALUES.items()}, globals())

# ---- lifetimes ----

REFS: list[weakref.ref] = []


class Directory(tempfile.TemporaryDirectory):
    """Goes without a warning, which would tell its name."""

    @classmethod
    def _cleanup(cls, name, warn_message, **options):
        cls._rmtree(name)


class Finalised:
    """Says when it dies."""

    def __init__(self, name, v=None):
        self.name, self.v = name, v

    def __del__(self):
        note("freed", self.name)


@torch.compiler.disable
def follow(*things):
    REFS.extend(weakref.ref(v) for v in things)


@torch.compiler.disable
def alive():
    """Which of the things followed so far are alive."""
    note([r() is not None for r in REFS])


@torch.compiler.disable
def forget():
    REFS.clear()


LIFETIMES = {
    "deleted": "y = x + 1\nfollow(y)\nz = y * 2\ndel y\nalive()\nreturn z * 3",
    "deleted_at_once": "y = x + 1\nfollow(y)\ndel y\nalive()\nreturn x * 3",
    "rebound": "y = x + 1\nfollow(y)\ny = y * 2\nalive()\nreturn y * 3",
    "rebound_by_break": "y = x + 1\nfollow(y)\ny = ext(3)\nalive()\nreturn x * y",
    "kept": "y = x + 1\nfollow(y)\nz = y * 2\nalive()\nreturn y * z",
    "not_read_again": "y = x + 1\nfollow(y)\nz = x * 2\nalive()\nreturn z * 3",
    "object": "o = Box(x + 1)\nfollow(o, o.v)\ny = o.v * 2\ndel o\nalive()\nreturn y * 3",
    "object_in_list": "l = [Box(x + 1)]\nfollow(l[0])\ny = l[0].v * 2\nl.clear()\nalive()\nreturn y * 3",
    "attribute_rebound": "o = Box(x + 1)\nfollow(o.v)\no.v = o.v * 2\nalive()\nreturn o.v * 3",
    "temporary": "follow(x + 1)\nalive()\nreturn x * 3",
    "argument_of_break": "y = ident(x + 1)\nfollow(y)\ny = y * 2\nalive()\nreturn y * 3",
    "loop_variable": "for i in range(3):\n    y = x + i\n    follow(y)\n    alive()\nreturn y * 3",
    "in_callee": "def inner(v):\n    w = v + 1\n    follow(w)\n    return w * 2\nz = inner(x)\nalive()\nreturn z * 3",
    "local_of_callee": """
        def inner(v):
            w = Box(v + 1)
            follow(w)
            alive()
            return w.v * 2
        z = inner(x)
        alive()
        return z * 3
        """,
    "deleted_in_caller": """
        def inner(v):
            alive()
            return v * 2
        y = x + 1
        follow(y)
        z = inner(y)
        del y
        alive()
        return z * 3
        """,
    "exception_name": """
        y = x + 1
        try:
            boom(ValueError, 1)
        except ValueError as e:
            follow(e)
        alive()
        return y * 3
        """,
    "generator_dropped": """
        def g():
            yield x + 1
            yield x + 2
        it = g()
        y = next(it)
        follow(it)
        del it
        alive()
        return y * 3
        """,
    "cell": "y = x + 1\ndef f():\n    return y\nfollow(y)\nz = f() * 2\ny = None\nalive()\nreturn z * 3",
    "returned": "y = x + 1\nfollow(y)\nz = y * 2\nalive()\nreturn z",
    "temporary_directory": "d = Directory()\ny = x + 1\nthere = exists(d.name)\nreturn y * 2, there",
    "lock_held": "held = LOCK_HELD.hold()\ny = x + 1\nn = LOCK_HELD.holders()\nreturn y * 2, n",
    "with_manager": "with Manager(x) as v:\n    follow(v)\n    y = v * 2\n    del v\n    alive()\nreturn y * 3",
    "finaliser_order": """
        a = Finalised('a')
        b = Finalised('b')
        y = x + 1
        ext(y)
        del b
        note2('between')
        del a
        note2('end')
        return y * 3
        """,
    "finaliser_rebound": "a = Finalised('a')\ny = x + 1\next(y)\na = Finalised('b')\nnote2('between')\nreturn y * 3",
    "finaliser_in_callee": """
        def inner(v):
            a = Finalised('a', v)
            ext(v)
            return v * 2
        y = inner(x + 1)
        note2('back')
        return y * 3
        """,
    "finaliser_of_argument": "o = mk()\ny = x + 1\next(y)\no = None\nnote2('after')\nreturn y * 3",
}


@torch.compiler.disable
def exists(path):
    return os.path.isdir(path)


class Lock:
    """Held as long as the guard object lives, as in C++."""

    def __init__(self):
        self.guards = []

    @torch.compiler.disable
    def hold(self):
        guard = Box()
        self.guards = [weakref.ref(guard)]
        return guard

    @torch.compiler.disable
    def holders(self):
        return sum(g() is not None for g in self.guards)


LOCK_HELD = Lock()


@torch.compiler.disable
def ident(v):
    return v


@torch.compiler.disable
def note2(*values):
    note(*values)


@torch.compiler.disable
def mk():
    return Finalised("made")


for name, body in LIFETIMES.items():
    # The library makes other objects for each directory.
    settled = 3 if name == "temporary_directory" else 2
    LIFETIMES[name] = (f"forget()\n{textwrap.dedent(body).strip()}", {"graphs": (1, 8), "settled": settled})
breaks.table({f"lifetime_{n}": r for n, r in LIFETIMES.items()}, globals())


@scenario(graphs=(1, 3), settled=3)
def default_dict_identity():
    shared = [1]

    def fn(x):
        d = {"s": shared}
        y = x + 1
        ext(y)
        d["s"].append(2)
        return y * 2, d

    return Setup(fn, lambda: (t(3),), watch=lambda: shared)


@scenario()
def intermediate_gradient():
    def fn(x):
        y = x * 2
        ext(y)
        return y * x

    return Setup(fn, lambda: (t(3, grad=True),), after=lambda r: r.sum().backward())


@scenario(graphs=(1, 4), share=0.0)
def retained_gradient():
    def fn(x):
        y = x * 2
        y.retain_grad()
        z = ext(y * 3)
        return z * x, y

    return Setup(fn, lambda: (t(3, grad=True),), after=lambda r: (r[0].sum().backward(), r[1].grad))


@scenario(share=0.3)
def backward_in_break():
    def fn(x):
        y = (x * 2).sum()
        run_backward(y)
        return x.grad * 3

    return Setup(fn, lambda: (t(3, grad=True),))


@torch.compiler.disable
def run_backward(y):
    y.backward()


test = breaks.as_test()
