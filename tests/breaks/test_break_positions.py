"""A break at every kind of instruction: what was on the stack before it is there after it."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import functools
import operator
import os
import sys
import time

import torch
from harness import Breaks, Setup, boom, ext, ext2, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario

GLOBAL = 3


def pair(a, b, c=0, *rest, d=0, **named):
    return a * 2 + b + c + d + sum(rest) + sum(named.values())


def opaque(method):
    """A method that no capture looks into."""
    return torch.compiler.disable(method)


class Opaque:
    """All its special methods are opaque."""

    def __init__(self, value=2.0):
        self.value = value
        self.items = {}

    def _binary(name):
        @opaque
        def method(self, other):
            note(name, other)
            return getattr(operator, name)(self.value, other if not isinstance(other, Opaque) else other.value)

        return method

    for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "matmul"):
        locals()[f"__{_name.rstrip('_')}__"] = _binary(_name)
    for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
        locals()[f"__{_name}__"] = _binary(_name)
    del _name

    @opaque
    def __radd__(self, other):
        note("radd", other)
        return other + self.value if isinstance(other, (int, float)) else NotImplemented

    @opaque
    def __iadd__(self, other):
        note("iadd", other)
        self.value += other
        return self

    @opaque
    def __neg__(self):
        note("neg")
        return -self.value

    @opaque
    def __invert__(self):
        note("invert")
        return 7

    @opaque
    def __pos__(self):
        note("pos")
        return self.value

    @opaque
    def __abs__(self):
        note("abs")
        return abs(self.value)

    @opaque
    def __contains__(self, key):
        note("contains", key)
        return key == 2

    @opaque
    def __getitem__(self, key):
        note("getitem", repr(key))
        if isinstance(key, int) and key > 3:
            raise IndexError(key)
        return self.value

    @opaque
    def __setitem__(self, key, value):
        note("setitem", repr(key), value)
        self.items[repr(key)] = value

    @opaque
    def __delitem__(self, key):
        note("delitem", repr(key))
        self.items.pop(repr(key), None)

    @opaque
    def __len__(self):
        note("len")
        return 3

    @opaque
    def __bool__(self):
        note("bool")
        return True

    @opaque
    def __iter__(self):
        note("iter")
        return iter([1.0, 2.0, 3.0])

    @opaque
    def __format__(self, spec):
        note("format", spec)
        return f"<{spec}>"

    @opaque
    def __str__(self):
        note("str")
        return "opaque"

    @opaque
    def __repr__(self):
        note("repr")
        return "Opaque()"

    @opaque
    def __call__(self, *args, **kwargs):
        note("call", args, kwargs)
        return self.value

    @opaque
    def __index__(self):
        note("index")
        return 1

    @opaque
    def __hash__(self):
        note("hash")
        return 5

    @property
    def prop(self):
        return self._prop()

    @opaque
    def _prop(self):
        note("prop")
        return self.value


class Descriptor:
    @opaque
    def __get__(self, instance, owner):
        note("get")
        return 2.0 if instance is None else instance.__dict__["stored"]

    @opaque
    def __set__(self, instance, value):
        note("set", value)
        instance.__dict__["stored"] = value

    @opaque
    def __delete__(self, instance):
        note("delete")
        instance.__dict__["stored"] = 0.5


class Described:
    field = Descriptor()

    def __init__(self):
        self.__dict__["stored"] = 3.0


class Attributed:
    @opaque
    def __getattr__(self, name):
        note("getattr", name)
        if name.startswith("missing"):
            raise AttributeError(name)
        return 4.0

    @opaque
    def __setattr__(self, name, value):
        note("setattr", name, value)
        object.__setattr__(self, name, value)

    @opaque
    def __delattr__(self, name):
        note("delattr", name)
        object.__delattr__(self, name)


class Counter:
    """An iterator with an opaque step."""

    def __init__(self, n):
        self.n, self.i = n, 0

    def __iter__(self):
        return self

    @opaque
    def __next__(self):
        note("next", self.i)
        if self.i == self.n:
            raise StopIteration
        self.i += 1
        return float(self.i)


# ---- calls ----

CALLS = {
    "call_first": ("y = ext(x)\nreturn y + 1", {"graphs": 1}),
    "call_last": ("return ext(x + 1)", {"graphs": 1}),
    "call_middle": "ext(x + 1) * 2",
    "call_statement": "y = x + 1\next(y)\nreturn y * 2",
    "call_twice": ("ext(ext(x + 1) * 2) - 1", {"graphs": 3}),
    "call_keyword": "ext(value=x + 1) * 2",
    "call_keywords_after_positional": "ext(x + 1, 2, a=x + 3, b=4) * 2",
    "call_star": "ext(*[x + 1, x + 2]) * 2",
    "call_star_and_more": "ext(x + 1, *(x, 3), *[4]) * 2",
    "call_double_star": "ext(**{'value': x + 1, 'z': 2}) * 2",
    "call_star_and_double_star": "ext(*[x + 1], *[2, 3], a=1, **{'b': x}, **{'c': 2}) * 2",
    "argument_first": "pair(ext(x + 1), x * 3, 4)",
    "argument_middle": "pair(x + 1, ext(x * 3), x - 4)",
    "argument_last": "pair(x + 1, x * 3, ext(x - 4))",
    "argument_all": ("pair(ext(x + 1), ext(x * 3), ext(x - 4))", {"graphs": (3, 4)}),
    "argument_nested": "pair(x + 1, pair(x * 3, ext(x - 4), x / 2), x * 5)",
    "argument_keyword": "pair(x + 1, c=x * 3, b=ext(x - 4), d=x / 2)",
    "argument_in_star": "pair(x + 1, *[x * 3, ext(x - 4)], d=x / 2)",
    "argument_in_double_star": "pair(x + 1, x * 3, **{'c': ext(x - 4), 'd': x / 2, 'other': x})",
    "argument_of_torch_function": "torch.where(x > 0.5, ext(x + 1), x * 3)",
    "argument_of_method": "(x + 1).clamp(min=ext(0.2), max=0.9) * 2",
    "argument_of_builtin": "max((x + 1).shape[0], ext(2)) * (x * 3)",
    "method_call": "o = Opaque()\ny = x + 1\nreturn y * o._prop() * 2",
    "bound_method_kept": "m = Opaque()._prop\ny = x + 1\nreturn y * m() * 2",
    "call_of_instance": "y = x + 1\nreturn y * Opaque()(y, k=2) * 2",
    "call_c_function": "y = x + 1\ntime.sleep(0)\nreturn y * 2",
    "call_c_function_value": "y = x + 1\nn = os.getpid()\nreturn y * 2, n == os.getpid()",
    "call_refcount": "y = x + 1\nn = sys.getrefcount(y)\nreturn y * 2",
    "call_partial": "f = functools.partial(ext, x + 1)\nreturn f(2) * 2",
    "call_partial_of_c": "y = x + 1\nfunctools.partial(time.sleep, 0)()\nreturn y * 2",
    "call_graph_break": "y = x + 1\ntorch._dynamo.graph_break()\nreturn y * 2",
    "call_graph_break_as_value": "return (x + 1, torch._dynamo.graph_break(), x * 2)",
    "call_lambda": "f = lambda v: ext(v + 1) * 2\nreturn f(x) - 1",
    "call_default_argument": "def f(v, w=ext(x + 1)):\n    return v * w\nreturn f(x)",
    "call_decorated": "y = x + 1\n@ext\ndef f(v):\n    return v * 2\nreturn f(y)",
    "call_decorator_factory": """
        def deco(scale):
            ext()
            return lambda f: lambda v: f(v) * scale
        y = x + 1
        @deco(3)
        def f(v):
            return v * 2
        return f(y)
        """,
    "class_body": ("y = x + 1\nclass C:\n    v = ext(2)\nreturn y * C.v", {"settled": 3}),
    "super_call": "y = x + 1\nreturn Derived().f(y)",
    "sorted_with_key": "y = x + 1\nr = sorted([3, 1, 2], key=lambda v: ext(-v))\nreturn y * r[0]",
    "print_to_own_file": "y = x + 1\nw = Writer()\nprint('hello', 3, file=w)\nreturn y * 2, w.text",
    "tensor_item": "y = x + 1\nn = y.sum().item()\nreturn y * n",
    "tensor_tolist": "y = x + 1\nn = y.tolist()\nreturn y * n[0]",
    "tensor_float": "y = x + 1\nreturn y * float(y.sum())",
    "tensor_int": "y = x + 1\nreturn y * int(y.sum())",
    "tensor_bool": "y = x + 1\nreturn y * 2 if bool(y.sum() > 0) else y",
    "tensor_numpy": ("y = x + 1\na = y.detach().numpy()\nreturn y * 2, a.shape", {"graphs": 1, "breaks": 0, "share": 0.7}),
    "tensor_repr": ("y = x + 1\ns = repr(y)\nreturn y * 2, s", {"graphs": (1, 2), "breaks": (0, 1)}),
    "nonzero": ("y = x - 0.5\nz = torch.nonzero(y > 0)\nreturn z + 1", {"share": 0.7}),
    "masked_index": ("y = x - 0.5\nz = y[y > 0]\nreturn z + 1", {"share": 0.7}),
}


class Base:
    def f(self, v):
        return ext(v) * 2


class Derived(Base):
    def f(self, v):
        return super().f(v) + 1


class Writer:
    def __init__(self):
        self.text = []

    @opaque
    def write(self, s):
        self.text.append(s)


breaks.table(CALLS, globals())

# ---- attributes and items ----

ACCESS = {
    "attribute_load": "y = x + 1\nd = Described()\nreturn y * d.field",
    "attribute_store": "y = x + 1\nd = Described()\nd.field = 5.0\nreturn y * d.__dict__['stored']",
    "attribute_store_tensor": "y = x + 1\nd = Described()\nd.field = y\nreturn y * d.__dict__['stored']",
    "attribute_delete": "y = x + 1\nd = Described()\ndel d.field\nreturn y * d.__dict__['stored']",
    "attribute_of_class": "y = x + 1\nreturn y * Described.field",
    "attribute_augmented": "y = x + 1\nd = Described()\nd.field += 2\nreturn y * d.__dict__['stored']",
    "attribute_getattr": "y = x + 1\na = Attributed()\nreturn y * a.anything",
    "attribute_setattr": "y = x + 1\na = Attributed()\na.v = y\nreturn y * a.v",
    "attribute_delattr": "y = x + 1\na = Attributed()\na.v = 3\ndel a.v\nreturn y * a.v",
    "attribute_missing": """
        y = x + 1
        a = Attributed()
        try:
            a.missing
        except AttributeError as e:
            y = y * 2
        return y * 3
        """,
    "attribute_getattr_builtin": "y = x + 1\na = Attributed()\nreturn y * getattr(a, 'v')",
    "attribute_hasattr": """
        y = x + 1
        a = Attributed()
        return y * 2 if hasattr(a, 'v') and not hasattr(a, 'missing') else y
        """,
    "attribute_setattr_builtin": """
        y = x + 1
        d = Described()
        setattr(d, 'field', 2.5)
        return y * d.__dict__['stored']
        """,
    "attribute_property": "y = x + 1\nreturn y * Opaque().prop",
    "attribute_on_stack": "(x + 1, Described().field, x * 2)",
    "item_load": "y = x + 1\nreturn y * Opaque()[1]",
    "item_load_on_stack": "(x + 1, Opaque()[1], x * 2)",
    "item_load_slice": "y = x + 1\nreturn y * Opaque()[1:2]",
    "item_load_slice_step": "y = x + 1\nreturn y * Opaque()[1:x.shape[0]:2, ..., None]",
    "item_store": "y = x + 1\no = Opaque()\no[1] = y\nreturn y * 2, o.items",
    "item_store_slice": "y = x + 1\no = Opaque()\no[1:2] = y\nreturn y * 2, o.items",
    "item_store_value_breaks": "y = x + 1\nd = {}\nd['k'] = ext(y)\nreturn y * 2, d",
    "item_store_key_breaks": "y = x + 1\nd = {}\nd[ext('k')] = y\nreturn d, y * 2",
    "item_store_container_breaks": "y = x + 1\nd = {}\next(d)['k'] = y\nreturn d, y * 2",
    "item_delete": "y = x + 1\no = Opaque()\no[1] = 1\ndel o[1]\nreturn y * 2, o.items",
    "item_augmented": "y = x + 1\no = Opaque()\no[1] += 1\nreturn y * 2, o.items",
    "item_augmented_list": "y = [x + 1, x]\ny[ext(0)] += 2\nreturn y",
    "item_of_tensor_by_item": "y = x + 1\nreturn y[int((y > 5).sum())] * 2",
    "slice_with_break": "y = x + 1\nreturn y[ext(1):] * 2",
    "slice_store_with_break": "y = x + 1\ny[ext(1):] = 7\nreturn y * 2",
    "del_local_after": "y = x + 1\nz = ext(y)\ndel y\nreturn z * 2",
    "del_global": "global GLOBAL_MADE\nGLOBAL_MADE = x + 1\next()\nr = GLOBAL_MADE * 2\ndel GLOBAL_MADE\nreturn r",
    "global_store": "global GLOBAL\nold = GLOBAL\nGLOBAL = ext(5)\nr = x * GLOBAL\nGLOBAL = old\nreturn r",
    "index_protocol": "y = x + 1\nreturn y * [1, 2, 3][Opaque()]",
    "hash_protocol": "y = x + 1\nd = {Opaque(): 2}\nreturn y * list(d.values())[0]",
    "len_protocol": "y = x + 1\nreturn y * len(Opaque())",
    "abs_protocol": "y = x + 1\nreturn y * abs(Opaque(-2.0))",
}
ONE_GRAPH = ("index_protocol", "hash_protocol", "del_global", "global_store")
# A dict with another key in each call, which dies with it: captured anew, until the limit for such captures.
HOW = {name: {"graphs": (1, 2)} for name in ONE_GRAPH} | {"hash_protocol": {"graphs": (1, 2), "settled": 3}}
breaks.table({name: (body, HOW[name]) if name in HOW else body for name, body in ACCESS.items()}, globals())

# ---- operators ----

OPERATORS = {
    f"operator_{name}": f"y = x + 1\nr = Opaque({value}) {sign} {other}\nreturn y * r"
    for name, sign, value, other in (
        ("add", "+", 2.0, 3), ("sub", "-", 2.0, 3), ("mul", "*", 2.0, 3), ("truediv", "/", 2.0, 3), ("floordiv", "//", 7, 2),
        ("mod", "%", 7, 4), ("pow", "**", 2, 3), ("and", "&", 6, 3), ("or", "|", 6, 1), ("xor", "^", 6, 3),
        ("lshift", "<<", 1, 3), ("rshift", ">>", 8, 2), ("lt", "<", 1, 2), ("le", "<=", 1, 2), ("gt", ">", 1, 2),
        ("ge", ">=", 1, 2), ("eq", "==", 1, 2), ("ne", "!=", 1, 2),
    )
}  # fmt: skip
OPERATORS |= {
    "operator_reflected": "y = x + 1\nreturn y * (3 + Opaque(2.0))",
    "operator_reflected_not_implemented": """
        y = x + 1
        try:
            's' + Opaque(2.0)
        except TypeError:
            y = y * 3
        return y * 2
        """,
    "operator_inplace": "y = x + 1\no = Opaque(2.0)\no += 3\nreturn y * o.value",
    "operator_inplace_falls_back": "y = x + 1\no = Opaque(2.0)\no *= 3\nreturn y * o",
    "operator_neg": "y = x + 1\nreturn y * -Opaque(2.0)",
    "operator_pos": "y = x + 1\nreturn y * +Opaque(2.0)",
    "operator_invert": "y = x + 1\nreturn y * ~Opaque(2.0)",
    "operator_not": "y = x + 1\nreturn y * (not Opaque())",
    "operator_contains": "y = x + 1\nreturn y * (2 in Opaque())",
    "operator_not_contains": "y = x + 1\nreturn y * (2 not in Opaque())",
    "operator_left_on_stack": "(x + 1) * (Opaque(2.0) + 3) - x",
    "operator_operands_break": ("ext(x + 1) + ext(x * 2)", {"graphs": (2, 3)}),
    "operator_with_tensor": ("y = x + 1\nreturn (Opaque(2.0) * y) - 1", {"share": 0.6}),
    "operator_tensor_inplace": "y = x + 1\ny += ext(y)\nreturn y * 2",
    "comparison_operand": "y = x + 1\nreturn (y > ext(0.5)) & (y < 2)",
    "truth_of_opaque": "y = x + 1\nif Opaque():\n    y = y * 2\nreturn y",
    "and_of_opaque": "y = x + 1\nr = Opaque() and 3\nreturn y * r",
    "or_of_opaque": "y = x + 1\no = Opaque()\nr = o or 3\nreturn y * 2, r is o",
}
breaks.table(OPERATORS, globals())

# ---- building, unpacking, formatting, importing, names ----

BUILDING = {
    "build_list": "[x + 1, ext(2), x * 2]",
    "build_tuple": "(x + 1, ext(2), x * 2)",
    "build_set": "y = x + 1\nreturn len({1, ext(2), 3}) * y",
    "build_dict": "{'a': x + 1, ext('b'): x * 2, 'c': 1}",
    "build_const_key_dict": "{'a': x + 1, 'b': ext(2), 'c': x * 2}",
    "build_slice": "(x + 1)[0:ext(2)] * 2",
    "build_nested": "[x + 1, (x * 2, {'k': [x - 1, ext(3), x / 2]}), x * 4]",
    "build_list_extend": "[x + 1, *ext([1, 2]), x * 2]",
    "build_dict_update": "{'a': x + 1, **ext({'b': 2}), 'c': x * 2}",
    "build_set_update": "y = x + 1\nreturn len({1, *ext([1, 2]), 3}) * y",
    "build_string": "y = x + 1\ns = f'{1}-{ext(2)}-{3}'\nreturn y * len(s), s",
    "format_opaque": "y = x + 1\ns = f'a{Opaque():>5}b{3}'\nreturn y * len(s), s",
    "format_opaque_str": "y = x + 1\ns = f'a{Opaque()!s}b'\nreturn y * len(s), s",
    "format_opaque_repr": "y = x + 1\ns = f'a{Opaque()!r}b'\nreturn y * len(s), s",
    "format_spec_breaks": "y = x + 1\ns = f'{3.14159:{ext(\".2f\")}}'\nreturn y * len(s), s",
    "format_item": "y = x + 1\ns = f'{y.sum().item():.2f}'\nreturn y * 2, s",
    "format_percent": "y = x + 1\ns = '%s' % Opaque()\nreturn y * len(s), s",
    "format_method": "y = x + 1\ns = '{} {:>3}'.format(1, Opaque())\nreturn y * len(s), s",
    "unpack_opaque": "y = x + 1\na, b, c = Opaque()\nreturn y * a + b * c",
    "unpack_result": "y = x + 1\na, b = ext([y, 2])\nreturn a * b",
    "unpack_star": "y = x + 1\na, *b = Opaque()\nreturn y * a, b",
    "unpack_star_middle": "y = x + 1\na, *b, c = ext([1, 2, 3, y])\nreturn y * a, b, c * 2",
    "unpack_nested": "y = x + 1\n(a, (b, c)), d = ext([[1, [y, 3]], 4])\nreturn b * a * c * d",
    "unpack_into_items": "y = x + 1\nd = {}\nd['a'], d['b'] = ext((y, 2))\nreturn d['a'] * d['b'], d",
    "unpack_too_many": "y = x + 1\ntry:\n    a, b = Opaque()\nexcept ValueError as e:\n    y = y * 2\nreturn y * 3",
    "unpack_iterator": "y = x + 1\na, b = Counter(2)\nreturn y * a * b",
    "unpack_star_call": ("y = x + 1\nreturn pair(*Opaque(), d=y) + y", {"graphs": (1, 4)}),
    "walrus": "y = (z := ext(x + 1)) * 2\nreturn y + z",
    "walrus_in_condition": "y = x + 1\nif (n := ext(3)) > 2:\n    y = y * n\nreturn y",
    "conditional_expression": "y = x + 1\nreturn y * (2 if ext(True) else 3) - 1",
    "conditional_value": "(x + 1, ext(2) if x.shape[0] == 3 else 0, x * 2)",
    "assert_data": "y = x + 1\nassert y.sum() > 0, 'no'\nreturn y * 2",
    "assert_item": "y = x + 1\nassert y.sum().item() > 0\nreturn y * 2",
    "assert_opaque": "y = x + 1\nassert ext(True), 'no'\nreturn y * 2",
    "match_value": """
        y = x + 1
        match ext(2):
            case 1:
                return y
            case 2:
                return y * 2
            case _:
                return y * 3
        """,
    "match_sequence": "y = x + 1\nmatch ext([1, y]):\n    case [1, z]:\n        return z * 2\nreturn y",
    "match_mapping": """
        y = x + 1
        match ext({'k': y, 'o': 2}):
            case {'k': z, **rest}:
                return z * 2, rest
        return y
        """,
    "match_class": "y = x + 1\nmatch ext(Point(2, y)):\n    case Point(a, z):\n        return z * a\nreturn y",
    "match_guard": "y = x + 1\nmatch 3:\n    case n if ext(n) > 2:\n        return y * n\nreturn y",
    "lambda_made_before": "f = lambda v: v * 2\ny = ext(x + 1)\nreturn f(y)",
    "function_made_before": "def f(v, w=x):\n    return v * 2 + w\ny = ext(x + 1)\nreturn f(y)",
    "return_none": ("y = x + 1\next(y)", {"graphs": 1}),
    "starred_return": "return x + 1, *ext([1, 2]), x * 2",
    "chained_assignment": "a = b = ext(x + 1)\nreturn a * 2, b, a is b",
    "annotated_assignment": "y: torch.Tensor = ext(x + 1)\nreturn y * 2",
    "swap": "a, b = x + 1, x * 2\na, b = ext(b), a\nreturn a - b",
    "swap_three": "a, b, c = x + 1, x * 2, x - 3\na, b, c = c, ext(a), b\nreturn a - b * c",
}


class Point:
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


breaks.table(BUILDING, globals())


@scenario(graphs=(1, 2), breaks=(0, 2))
def import_with_effects():
    """A module that is not loaded yet, and does something when it is."""
    import tempfile

    folder = tempfile.mkdtemp()
    name = f"cdynamo_fresh_{abs(hash(folder))}"
    with open(os.path.join(folder, name + ".py"), "w") as file:
        file.write("import harness\nharness.note('imported')\nvalue = 3\nclass Inner:\n    v = 2\n")
    sys.path.insert(0, folder)
    code = f"def fn(x):\n    y = x + 1\n    import {name} as m\n    from {name} import Inner as I, value\n    return y * m.value * I.v * value\n"
    scope = {"__name__": __name__}
    exec(compile(code, __file__, "exec"), scope)

    def cleanup():
        sys.path.remove(folder)
        sys.modules.pop(name, None)

    return Setup(scope["fn"], lambda: (t(3),), watch=lambda: name in sys.modules, cleanup=cleanup)


@scenario(graphs=(1, 2), breaks=(0, 1))
def import_that_fails():
    def fn(x):
        y = x + 1
        try:
            import cdynamo_no_such_module
        except ImportError as error:
            y = y * len(error.args)
        return y * 2

    return Setup(fn, lambda: (t(3),))


@scenario(graphs=None, settled=3)
def nonlocal_written_in_break():
    n = 1.0

    @torch.compiler.disable
    def bump():
        nonlocal n
        n += 1

    def fn(x):
        nonlocal n
        y = x * n
        n = n + 10
        bump()
        return y * n

    return Setup(fn, lambda: (t(3),), watch=lambda: n)


@scenario()
def many_breaks_in_a_row():
    def fn(x):
        y = x + 1
        ext(1), ext(2), ext(3), time.sleep(0), ext(y)
        return y * 2

    return Setup(fn, lambda: (t(3),))


@case(lambda: ((t(3), 2), {"k": t(3, seed=1)}))
def all_parameter_kinds(x, /, n, *rest, k, **named):
    y = x + n
    y = ext(y)
    return y * k, rest, named


@case(lambda: (*(t(3, seed=i) for i in range(20)),))
def many_locals(a, b, c, d, e, f, g, h, i, j, k, ll, m, n, o, p, q, r, s, u):
    v, w = a + b, c + d
    ext(v)
    return v + w + e + f + g + h + i + j + k + ll + m + n + o + p + q + r + s + u


@case(lambda: (t(3), 2))
def unbound_local_after(x, n):
    y = x + 1
    if n > 5:
        z = 3
    ext(y)
    try:
        y = y * z
    except UnboundLocalError:
        y = y * 2
    return y * 3


@case()
def deep_stack(x):
    return (x + 1, (x + 2, (x + 3, (x + 4, (x + 5, (x + 6, ext(x + 7), x + 8), x + 9), x + 10), x + 11), x + 12), x + 13)


@case(share=0.6)
def ops_in_break(x):
    return ext2(x + 1) * 2


test = breaks.as_test()
