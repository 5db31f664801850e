"""Jumps on data: the prefix is captured once, each branch when it is first taken."""

import torch
from harness import Breaks, Setup, ext, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


def up():
    return (t(3),)


def down():
    return (-t(3),)


def flat():
    return (t(3) * 0,)


# name: body of f(x); two graphs for the first way, one more for the other way, none when both are known
TWO_WAYS = {
    "if_else": "y = x + 1\nif x.sum() > 0:\n    return y * 2\nelse:\n    return y - 3",
    "if_only": "y = x + 1\nif x.sum() > 0:\n    y = y * 2\nreturn y - 3",
    "if_not": "y = x + 1\nif not x.sum() > 0:\n    y = y * 2\nreturn y - 3",
    "if_item": "y = x + 1\nif x.sum().item() > 0:\n    y = y * 2\nreturn y - 3",
    "if_bool_call": "y = x + 1\nif bool(x.sum() > 0):\n    y = y * 2\nreturn y - 3",
    "if_any": "y = x + 1\nif torch.any(x > 0):\n    y = y * 2\nreturn y - 3",
    "if_method_all": "y = x + 1\nif (x > 0).all():\n    y = y * 2\nreturn y - 3",
    "if_allclose": "y = x + 1\nif torch.allclose(x, x.abs()):\n    y = y * 2\nreturn y - 3",
    "if_equal": "y = x + 1\nif torch.equal(x, x.abs()):\n    y = y * 2\nreturn y - 3",
    "if_and": "y = x + 1\nif x.shape[0] == 3 and x.sum() > 0:\n    y = y * 2\nreturn y - 3",
    "if_or": "y = x + 1\nif x.shape[0] == 4 or x.sum() > 0:\n    y = y * 2\nreturn y - 3",
    "if_assigned": "y = x + 1\nflag = x.sum() > 0\nif flag:\n    y = y * 2\nreturn y - 3, flag",
    "if_with_values_on_stack": "return [x + 1, (x * 2 if x.sum() > 0 else x - 3), x / 2]",
    "conditional_expression": "y = x + 1\nz = y * 2 if x.sum() > 0 else y - 3\nreturn z / 2",
    "conditional_argument": "return torch.add(x + 1, x * 2 if x.sum() > 0 else x - 3)",
    "and_value": "y = x + 1\nz = x.sum() > 0 and y * 2\nreturn y - 3, z",
    "or_value": "y = x + 1\nz = x.sum() > 0 or y * 2\nreturn y - 3, z",
    "not_value": "y = x + 1\nz = not x.sum() > 0\nreturn y - 3, z",
    "in_lambda": "y = x + 1\nf = lambda v: v * 2 if x.sum() > 0 else v - 3\nreturn f(y) / 2",
    "early_return": "y = x + 1\nif x.sum() > 0:\n    return y * 2\ny = y / 2\nreturn y - 3",
    "raise_in_one_branch": """
        y = x + 1
        try:
            if x.sum() < 0:
                raise ValueError('negative')
            y = y * 2
        except ValueError:
            y = y / 2
        return y - 3
        """,
    "assert_caught": """
        y = x + 1
        try:
            assert x.sum() > 0, 'negative'
            y = y * 2
        except AssertionError:
            y = y / 2
        return y - 3
        """,
    "match_on_item": """
        y = x + 1
        match x.sum().item() > 0:
            case True:
                return y * 2
            case False:
                return y - 3
        """,
    "in_list": "y = x + 1\nif x.sgn().sum().item() in [3.0, 2.0]:\n    y = y * 2\nreturn y - 3",
    "in_callee": "y = x + 1\nreturn helper(y, x) - 3",
    "in_callee_value": "y = x + 1\nif positive(x):\n    y = y * 2\nreturn y - 3",
    "filter_list": "y = x + 1\nkept = [v for v in (x,) if v.sum() > 0]\nreturn y * len(kept) - 3",
}
EXPECT = dict(then=(down, up, down), after_change=(1, 0, 0))
OWN = {
    # more ways than two, or operations in one way only
    "not_value": {"after_change": (None, 0, 0), "graphs": (1, 2)},
    "or_value": {"after_change": (None, 0, 0), "graphs": (1, 2)},
    "and_value": {"after_change": (None, 0, 0), "graphs": (1, 2)},
    "if_allclose": {"share": 0.4},
    "if_equal": {"share": 0.4},
}


def helper(y, x):
    if x.sum() > 0:
        return y * 2
    return y / 2


def positive(x):
    return x.sum() > 0


breaks.table({name: (body, OWN.get(name, {})) for name, body in TWO_WAYS.items()}, globals(), up, **EXPECT)

MORE = {
    "elif_chain": (
        "y = x + 1\nif x.sum() > 1:\n    y = y * 2\nelif x.sum() < -1:\n    y = y * 3\nelse:\n    y = y * 4\nreturn y - 3",
        dict(then=(down, flat, up, down, flat), after_change=(2, 1, 0, 0, 0)),
    ),
    "chained_comparison": (
        "y = x + 1\nif -1 < x.sum() < 1:\n    y = y * 2\nreturn y - 3",
        dict(then=(down, flat, up), after_change=(None, None, 0), graphs=(2, 3)),
    ),
    "nested_if": (
        "y = x + 1\nif x.sum() > -1:\n    y = y * 2\n    if x.sum() > 1:\n        y = y * 3\n    else:\n        y = y * 4\nreturn y - 3",
        dict(then=(down, flat, up), after_change=(1, 1, 0), graphs=3),
    ),
    "while_data": (
        "y = x + 1\nwhile y.sum() < 20:\n    y = y * 2\nreturn y - 3",
        dict(then=(lambda: (t(3) * 0.01,), lambda: (t(3) + 40,)), after_change=(0, 0), graphs=3),
    ),
    "while_item": (
        "y = x + 1\nn = 0\nwhile y.sum().item() < 20:\n    y = y * 2\n    n += 1\nreturn y - 3, n",
        dict(graphs=None, settled=3),
    ),
    "while_not": (
        """
        y = x + 1
        while not y.sum() > 20:
            y = y * 2
        else:
            y = y + 5
        return y - 3
        """,
        dict(graphs=3),
    ),
    "while_true_break": (
        """
        y = x + 1
        while True:
            y = y * 2
            if y.sum() > 20:
                break
        return y - 3
        """,
        dict(graphs=3),
    ),
    "while_continue": (
        "y = x + 1\nn = 0\nwhile n < 3:\n    n += 1\n    if y.sum() > 20:\n        continue\n    y = y * 2\nreturn y - 3",
        dict(graphs=None),
    ),
    "and_chain": ("y = x + 1\nz = (x.sum() > 0) and (x.sum() > 0.1) and y * 2\nreturn z - 3", dict(graphs=(2, 4))),
    "or_chain": ("y = x + 1\nz = (x.sum() < 0) or (x.sum() < 0.1) or y * 2\nreturn z - 3", dict(graphs=(2, 4))),
    "shape_stays": ("y = x + 1\nif x.shape[0] > 2:\n    y = y * 2\nreturn y", dict(graphs=1, breaks=0)),
    "is_none_stays": ("y = x + 1\nif x is None or y is x:\n    y = y * 2\nreturn y", dict(graphs=1, breaks=0)),
    "for_with_if": (
        "y = x + 1\nfor i in range(4):\n    if y.sum() > 10:\n        y = y - 1\n    else:\n        y = y * 2\nreturn y",
        dict(graphs=(3, 5)),
    ),
}
breaks.table(MORE, globals(), up)


@scenario(graphs=2, after_change=(1, 0, 0))
def branch_effects():
    """Effects of the branch not taken do not happen."""
    said = []
    current = [up]

    def fn(x):
        y = x + 1
        said.append("before")
        if x.sum() > 0:
            said.append("up")
            y = y * 2
        else:
            said.append("down")
            y = y - 3
        said.append("after")
        return y / 2

    changes = [lambda new=new: current.__setitem__(0, new) for new in (down, up, down)]
    return Setup(fn, lambda: current[0](), watch=lambda: list(said), changes=changes)


@scenario(graphs=2, settled=1)
def data_in_module():
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def forward(self, x):
            x = self.a(x)
            if x.sum() > -100:
                x = self.b(x)
            return x.relu()

    return Setup(M(), lambda: (t(2, 3),))


@scenario(graphs=2)
def data_grad():
    def fn(x):
        y = x * 3
        if y.sum() > 0:
            y = y * 2
        return y.sum()

    return Setup(fn, lambda: (t(3, grad=True),), after=lambda result: result.backward())


@case(lambda: (t(3), True))
def opaque_flag(x, flag):
    y = x + 1
    if ext(flag):
        y = y * 2
    return y - 3


test = breaks.as_test()
