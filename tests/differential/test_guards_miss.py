"""After the capture something changes: the answer must follow, never a stale one."""

import abc
import builtins
import collections
import types

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario

FLAG = True
LIST = [1, 2]
HELPER_CALLS = 0


def helper(x):
    return x * 2


class Box:
    kind = "class"

    def __init__(self, v=2):
        self.v = v

    def go(self, x):
        return x * self.v

    def __len__(self):
        return 3


def varied(fn, *values, expect=None):
    """fn(x, value) called with each value in turn."""
    state = {"v": values[0]}

    def put(v):
        return lambda: state.update(v=v)

    return Setup(fn, lambda: (t(3), state["v"]), changes=[put(v) for v in values[1:]])


@scenario(after_change=(1, 0, 0))
def int_value():
    return varied(lambda x, n: x * n, 2, 3, -1, 2)


@scenario(after_change=(1, 0))
def float_zero_sign():
    return varied(lambda x, f: (x * f, f), 0.0, -0.0, 1.5)


@scenario(after_change=(1, 1, 1))
def bool_int_float_of_same_value():
    return varied(lambda x, v: (x * v, v), 1, True, 1.0, "a" and 1 + 0j)


@scenario(after_change=(1,))
def string_value():
    return varied(lambda x, s: getattr(x, s)(), "sin", "cos")


@scenario(after_change=(1, 1))
def none_to_value():
    return varied(lambda x, v: x + 1 if v is None else x * v, None, 3, 2.5)


@scenario(after_change=(0, 0))
def only_is_none_is_looked_at():
    return varied(lambda x, v: x + 1 if v is None else x - 1, 3, 4, "s")


@scenario(after_change=(0, 1))
def only_truth_is_looked_at():
    return varied(lambda x, v: x + 1 if v else x - 1, 3, 4, 0)


@scenario(after_change=(0, 0))
def passed_through():
    return varied(lambda x, v: (x + 1, v), 3, "s", [1])


@scenario(after_change=(1, 1))
def list_length():
    return varied(lambda x, v: x * len(v), [1, 2], [1, 2, 3], [])


@scenario(after_change=(1,))
def list_item():
    return varied(lambda x, v: x * v[1], [1, 2], [1, 5])


@scenario(after_change=(1,))
def list_to_tuple():
    return varied(lambda x, v: (x * v[0], v + v), [1, 2], (1, 2))


@scenario(after_change=(1, 1))
def dict_key_appears_and_value():
    return varied(lambda x, d: x * d.get("k", 1), {}, {"k": 2}, {"k": 3})


@scenario(after_change=(0,))
def dict_unread_key():
    return varied(lambda x, d: x * d["k"], {"k": 2}, {"k": 2, "other": 5})


@scenario(after_change=(1,))
def dict_order():
    return varied(lambda x, d: (x + 1, list(d)), {"a": 1, "b": 2}, {"b": 2, "a": 1})


@scenario(after_change=(1,))
def ordered_dict_order():
    return varied(lambda x, d: (x + 1, list(d)), collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1))


@scenario()
def ordered_dict_moved():
    d = collections.OrderedDict(a=1, b=2)
    return Setup(lambda x: (x + 1, list(d)), lambda: (t(3),), changes=[lambda: d.move_to_end("a")])


@scenario(after_change=(1,))
def set_changes():
    return varied(lambda x, s: x * (2 if 1 in s else 3), {1, 2}, {2, 3})


@scenario()
def set_order():
    return varied(lambda x, s: (x + 1, list(s)), {0, 8}, {8, 0})


@scenario(after_change=(1, 1, 1, 1))
def tensor_metadata():
    state = {"x": t(3)}

    def put(v):
        return lambda: state.update(x=v)

    return Setup(
        lambda x: (x * 2, x.shape, x.dtype),
        lambda: (state["x"],),
        changes=[put(t(4)), put(t(3, dtype=torch.float64)), put(t(3, 1)), put(t(3, grad=True))],
    )


@scenario(after_change=(None,))
def tensor_strides():
    state = {"x": t(3, 4)}
    return Setup(lambda x: (x.contiguous(), x.stride(), x.is_contiguous()), lambda: (state["x"],), changes=[lambda: state.update(x=t(4, 3).t())])


@scenario(after_change=(None,))
def tensor_to_number():
    return varied(lambda x, v: x * v, t(3), 2.0)


@scenario(after_change=(1, None))
def tensor_to_parameter():
    return varied(lambda x, v: (x * v, type(v).__name__), t(3), torch.nn.Parameter(t(3)), t(3))


@scenario(after_change=(1,))
def inputs_alias_later():
    a, b = t(3), t(3, seed=1)
    state = {"b": b}

    def f(x, y):
        x.add_(1)
        return x is y, x + y

    return Setup(f, lambda: [a.copy_(t(3)), (a, state["b"])][1], changes=[lambda: state.update(b=a)])


@scenario(after_change=(1,))
def inputs_alias_no_longer():
    a, b = t(3), t(3, seed=1)
    state = {"b": a}

    def f(x, y):
        x.add_(1)
        return x + y

    return Setup(f, lambda: [a.copy_(t(3)), (a, state["b"])][1], changes=[lambda: state.update(b=b)])


@scenario(after_change=(1,))
def lists_alias_later():
    state = {"same": False}

    def args():
        a = [1]
        return (t(3), a, a if state["same"] else [1])

    def f(x, a, b):
        a.append(2)
        return x * len(b)

    return Setup(f, args, changes=[lambda: state.update(same=True)])


@scenario(after_change=(None,))
def objects_alias_later():
    state = {"same": False}

    def args():
        a = Box()
        return (t(3), a, a if state["same"] else Box())

    def f(x, a, b):
        a.v = 10
        return x * b.v

    return Setup(f, args, changes=[lambda: state.update(same=True)])


@scenario(after_change=(None,))
def dicts_alias_later():
    state = {"same": False}

    def args():
        a = {"k": 1}
        return (t(3), a, a if state["same"] else {"k": 1})

    def f(x, a, b):
        a["k"] = 5
        return x * b["k"]

    return Setup(f, args, changes=[lambda: state.update(same=True)])


@scenario(after_change=(None,))
def keys_alias_later():
    state = {"same": False}

    def args():
        a = Box()
        return (t(3), a, a if state["same"] else Box())

    return Setup(lambda x, a, b: x * len({a: 1, b: 2}), args, changes=[lambda: state.update(same=True)])


@scenario(after_change=(None,))
def tensor_keys_alias_later():
    state = {"same": False}

    def args():
        a = t(3)
        return (t(3), a, a if state["same"] else t(3))

    return Setup(lambda x, a, b: x * len({a: 1, b: 2}), args, changes=[lambda: state.update(same=True)])


@scenario(after_change=(None,))
def set_members_alias_later():
    state = {"same": False}

    def args():
        a = Box()
        return (t(3), a, a if state["same"] else Box())

    return Setup(lambda x, a, b: (x * len({a, b}), a in [b], a == b), args, changes=[lambda: state.update(same=True)])


@scenario(after_change=(1,))
def attribute_value():
    b = Box()
    return Setup(lambda x: b.go(x), lambda: (t(3),), changes=[lambda: setattr(b, "v", 7)])


@scenario(after_change=(1,))
def attribute_shadows_class():
    b = Box()
    return Setup(lambda x: x + 1 if b.kind == "class" else x - 1, lambda: (t(3),), changes=[lambda: setattr(b, "kind", "instance")])


@scenario(after_change=(1,))
def attribute_deleted():
    b = Box()
    b.extra = 5
    return Setup(lambda x: x * getattr(b, "extra", 1), lambda: (t(3),), changes=[lambda: delattr(b, "extra")])


@scenario(after_change=(1,))
def attribute_appears_where_getattr_answered():
    class D:
        def __getattr__(self, name):
            return 3

    d = D()
    return Setup(lambda x: x * d.k, lambda: (t(3),), changes=[lambda: setattr(d, "k", 9)])


@scenario(after_change=(1,))
def method_patched_on_class():
    class B(Box):
        pass

    b = B()

    def change():
        B.go = lambda self, x: x - 100

    return Setup(lambda x: b.go(x), lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def method_patched_on_base():
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        pass

    b = B()

    def change():
        A.go = lambda self, x: x - 100

    return Setup(lambda x: b.go(x), lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def super_target_patched():
    class A:
        def go(self, x):
            return x + 1

    class B(A):
        def go(self, x):
            return super().go(x) * 2

    b = B()

    def change():
        A.go = lambda self, x: x - 100

    return Setup(lambda x: b.go(x), lambda: (t(3),), changes=[change])


@scenario(after_change=(None, None, None, None))
def special_methods_patched():
    class S:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return i

        def __bool__(self):
            return True

        def __contains__(self, v):
            return True

        def __eq__(self, o):
            return True

    s = S()

    def put(name, fn):
        return lambda: setattr(S, name, fn)

    return Setup(
        lambda x: (x * len(s), s[3], 1 if s else 2, 5 in s, s == 1), lambda: (t(3),),
        changes=[put("__len__", lambda self: 5), put("__getitem__", lambda self, i: -i), put("__bool__", lambda self: False), put("__contains__", lambda self, v: False)],
    )  # fmt: skip


@scenario(after_change=(1,))
def bases_changed():
    class A:
        k = 1

    class C:
        k = 2

    class B(A):
        pass

    b = B()

    def change():
        B.__bases__ = (C,)

    return Setup(lambda x: x * b.k, lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def class_of_object_changed():
    class A:
        def go(self, x):
            return x + 1

    class B:
        def go(self, x):
            return x - 1

    a = A()

    def change():
        a.__class__ = B

    return Setup(lambda x: a.go(x), lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def class_attribute_changed():
    class A:
        k = 1

    return Setup(lambda x: x * A.k, lambda: (t(3),), changes=[lambda: setattr(A, "k", 6)])


@scenario(after_change=(1,))
def class_attribute_appears():
    class A:
        pass

    return Setup(lambda x: x * (2 if hasattr(A, "k") else 3), lambda: (t(3),), changes=[lambda: setattr(A, "k", 6)])


@scenario(after_change=(1,))
def property_replaced():
    class A:
        @property
        def k(self):
            return 2

    a = A()

    def change():
        A.k = property(lambda self: 50)

    return Setup(lambda x: x * a.k, lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def global_function_replaced():
    def f(x):
        return helper(x)

    original = helper

    def put(fn):
        globals()["helper"] = fn

    return Setup(f, lambda: (t(3),), changes=[lambda: put(lambda x: x - 5)], cleanup=lambda: put(original))


@scenario(after_change=(1,))
def function_code_replaced():
    def g(x):
        return x + 1

    def h(x):
        return x * 50

    def change():
        g.__code__ = h.__code__

    return Setup(lambda x: g(x), lambda: (t(3),), changes=[change])


@scenario(after_change=(1, 1))
def function_defaults_replaced():
    def g(x, k=2, *, j=3):
        return x * k + j

    def change():
        g.__defaults__ = (9,)

    def change2():
        g.__kwdefaults__ = {"j": 100}

    return Setup(lambda x: g(x), lambda: (t(3),), changes=[change, change2])


@scenario(after_change=(1,))
def kwdefault_mutated_in_place():
    def g(x, *, j=3):
        return x + j

    return Setup(lambda x: g(x), lambda: (t(3),), changes=[lambda: g.__kwdefaults__.update(j=50)])


@scenario(after_change=(1,))
def own_defaults_replaced():
    def f(x, k=2):
        return x * k

    def change():
        f.__defaults__ = (9,)

    return Setup(f, lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def global_shadows_builtin():
    def f(x):
        return x * len([1, 2])

    return Setup(f, lambda: (t(3),), changes=[lambda: globals().update(len=lambda v: 50)], cleanup=lambda: globals().pop("len", None))


@scenario(after_change=(1,))
def builtin_patched():
    original = builtins.len

    def f(x):
        return x * len([1, 2])

    def put(v):
        builtins.len = v

    return Setup(f, lambda: (t(3),), changes=[lambda: put(lambda v: 50)], cleanup=lambda: put(original), watch=lambda: put(original))


@scenario(after_change=(1,))
def global_list_changed_in_place():
    def f(x):
        return x * LIST[0]

    LIST[0] = 1
    return Setup(f, lambda: (t(3),), changes=[lambda: LIST.__setitem__(0, 77)], cleanup=lambda: LIST.__setitem__(0, 1))


@scenario(after_change=(1,))
def module_attribute_changed():
    m = types.ModuleType("m")
    m.k = 2
    return Setup(lambda x: x * m.k, lambda: (t(3),), changes=[lambda: setattr(m, "k", 8)])


@scenario(after_change=(1,))
def module_function_patched():
    original = torch.nn.functional.relu

    def f(x):
        return torch.nn.functional.relu(x)

    def put(fn):
        torch.nn.functional.relu = fn

    return Setup(f, lambda: (t(3),), changes=[lambda: put(lambda x: x * 3)], cleanup=lambda: put(original))


@scenario(after_change=(1,))
def closure_cell_of_inner_function():
    k = 2

    def g(x):
        return x * k

    def change():
        nonlocal k
        k = 9

    return Setup(lambda x: g(x), lambda: (t(3),), changes=[change])


@scenario(after_change=(1,))
def abc_registration():
    import abc

    class A(abc.ABC):
        pass

    class B:
        pass

    b = B()
    return Setup(lambda x: x + 1 if isinstance(b, A) else x - 1, lambda: (t(3),), changes=[lambda: A.register(B)])


@scenario(after_change=(1,))
def argument_count():
    state = {"n": 1}
    return Setup(lambda *xs: sum(xs), lambda: tuple(t(3) for _ in range(state["n"])), changes=[lambda: state.update(n=3)])


@scenario(after_change=(1,))
def keyword_names():
    state = {"k": "a"}
    return Setup(lambda x, **kw: (x * 2, list(kw)), lambda: ((t(3),), {state["k"]: 1}), changes=[lambda: state.update(k="b")])


@scenario(after_change=(1,))
def default_dtype_changed():
    return Setup(
        lambda x: torch.ones(2),
        lambda: (t(3),),
        changes=[lambda: torch.set_default_dtype(torch.float64)],
        cleanup=lambda: torch.set_default_dtype(torch.float32),
    )


@scenario(after_change=(1,))
def tuple_items():
    return varied(lambda x, v: x * v[0][1], ((1, 2), 3), ((1, 7), 3))


@scenario(after_change=(1,))
def nested_dict_in_object():
    b = Box()
    b.table = {"a": {"b": [1, 2]}}
    return Setup(lambda x: x * b.table["a"]["b"][1], lambda: (t(3),), changes=[lambda: b.table["a"]["b"].__setitem__(1, 9)])


@scenario(after_change=(1,))
def dtype_argument():
    return varied(lambda x, d: x.to(d), torch.float64, torch.int32)


@scenario(after_change=(1,))
def function_argument():
    return varied(lambda x, f: f(x), torch.sin, torch.cos)


@scenario(after_change=(1,))
def method_descriptor_argument():
    return varied(lambda x, f: f(x), torch.Tensor.sin, torch.Tensor.cos)


@scenario(after_change=(1,))
def bound_tensor_method_argument():
    return varied(lambda x, f: x + f(), t(3).sin, t(3).cos)


@scenario(after_change=(1,))
def bound_list_method_argument():
    return varied(lambda x, f: x + f(1), [5, 1].index, [5, 1, 1].count)


@scenario(after_change=(1,))
def class_argument():
    class A:
        def __call__(self, x):
            return x + 1

    class B:
        def __call__(self, x):
            return x - 1

    return varied(lambda x, c: c()(x), A, B)


@scenario(after_change=(1,))
def torch_function_mode_entered():
    """Under a mode the function runs eagerly; the mode's handler, where the mode is off, is captured."""
    from torch.overrides import TorchFunctionMode

    class Doubler(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out * 2 if func is torch.sin else out

    box = []

    def change():
        box.append(Doubler())
        box[0].__enter__()

    return Setup(lambda x: torch.sin(x), lambda: (t(3),), changes=[change], cleanup=lambda: [m.__exit__(None, None, None) for m in box])


@scenario(after_change=(None,))
def tensor_subclass_later():
    class Sub(torch.Tensor):
        pass

    state = {"x": t(3)}
    return Setup(lambda x: x * 2, lambda: (state["x"],), changes=[lambda: state.update(x=t(3).as_subclass(Sub))])


@scenario(after_change=(1,) * 7)
def as_many_captures_as_the_limit():
    return varied(lambda x, n: x**n, *range(8))


@scenario(after_change=(1,))
def nan_value():
    return varied(lambda x, f: x * f, float("nan"), 1.0)


@scenario(after_change=(0,))
def nan_value_again():
    return varied(lambda x, f: x * f, float("nan"), -float("-nan"))


@scenario(after_change=(1,))
def big_int():
    return varied(lambda x, n: x + (n % 7), 2**70, 2**70 + 1)


@scenario(after_change=(1,))
def deque_length():
    return varied(lambda x, d: x * (2 if d else 3), collections.deque([1]), collections.deque())


def reads_item(x, d):
    d["k"]
    return x * 2


@scenario(after_change=(0, None))
def unused_item_goes():
    return varied(reads_item, {"k": 1}, {"k": 2, "l": 3}, {"l": 3})


def reads_attribute(x, box):
    box.v
    return x * 2


@scenario(after_change=(0, None))
def unused_attribute_goes():
    gone = Box()
    del gone.v
    return varied(reads_attribute, Box(), Box(3), gone)


@scenario(after_change=(0, 0, 1, None))
def defaults_of_a_new_function():
    def make(n, **named):
        def f(x, n=n, *, k=1, unused=None):
            return x * n + k

        f.__kwdefaults__.update(named)
        return f

    lacking = make(2)
    del lacking.__kwdefaults__["unused"]
    return varied(lambda x, f: f(x), make(2), make(2), make(2, unused=3), make(2, k=5), lacking)


test_guards_miss = cases.as_test(__name__)


def test_backend_that_registers_classes():
    """What the engine or the backend imports while capturing may register classes: the capture stands. What comes later is a miss."""
    graphs = []

    class Shape(abc.ABC):  # noqa: B024
        pass

    class Thing:
        pass

    def backend(gm, inputs):
        graphs.append(gm)
        abc.ABCMeta("Later", (), {}).register(type("Other", (), {}))
        return gm.forward

    compiled = cdynamo.compile(lambda x, v: x + 1 if isinstance(v, Shape) else x - 1, backend=backend)
    x = t(3)
    with cdynamo.config.patch(strict=True):
        assert torch.equal(compiled(x, Thing()), x - 1) and torch.equal(compiled(x, Thing()), x - 1)
        assert len(graphs) == 1
        Shape.register(Thing)
        assert torch.equal(compiled(x, Thing()), x + 1)
