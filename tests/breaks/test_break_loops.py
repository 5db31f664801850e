"""Breaks in loops: the iterator goes on where it was, nothing is compiled per iteration."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import collections
import contextlib
import itertools
import time

import torch
from harness import Breaks, Setup, boom, ext, note, t

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


def numbers(n):
    for i in range(n):  # noqa: UP028
        yield i


def tensors(x, n):
    for _ in range(n):
        x = x + 1
        yield x


class Countdown:
    """An iterator in Python."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Bag:
    """An iterable in Python."""

    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


class Sequence:
    """Iterated by index."""

    def __init__(self, *items):
        self.items = items

    def __getitem__(self, i):
        return self.items[i]


# One break in the body. The first graph is entry to break, the second break to break, further ones are the way out and changes of i.
OVER = {
    "over_range": "for _ in range(4):\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_list": "for _ in [1, 1, 1, 1]:\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_tuple": "for _ in (1, 1, 1, 1):\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_string": "for _ in 'aaaa':\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_dict": "for _ in {'a': 1, 'b': 2, 'c': 3}:\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_values": "for v in {'a': 1, 'b': 1, 'c': 1}.values():\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_items": "for k, v in {'a': 1, 'b': 1, 'c': 1}.items():\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_set": "for _ in {1, 2, 3}:\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_zip": "for a, b in zip([1, 1, 1], (2, 2, 2)):\n    x = x * a + b\n    x = ext(x)\nreturn x * 2",
    "over_enumerate": "for i, v in enumerate([1, 1, 1]):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_reversed": "for v in reversed([1, 1, 1]):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_map": "for v in map(lambda v: v * 2, [1, 1, 1]):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_filter": "for v in filter(lambda v: v > 0, [1, 0, 1, 1]):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_chain": "for v in itertools.chain([1, 1], (1, 1)):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_repeat": "for v in itertools.repeat(1, 4):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_islice": "for v in itertools.islice(itertools.count(), 4):\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_generator": "for _ in numbers(4):\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_generator_expression": "for v in (1 for _ in range(4)):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_tensor_generator": "for v in tensors(x, 4):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_user_iterator": "for _ in Countdown(4):\n    x = x + 1\n    x = ext(x)\nreturn x * 2",
    "over_user_iterable": "for v in Bag(1, 1, 1):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_sequence_protocol": "for v in Sequence(1, 1, 1):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_tensor": "for row in x.reshape(3, 1):\n    x = x + row\n    x = ext(x)\nreturn x * 2",
    "over_list_of_tensors": "for v in [x, x + 1, x + 2]:\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_deque": "for v in collections.deque([1, 1, 1]):\n    x = x + v\n    x = ext(x)\nreturn x * 2",
    "over_counter_used": "for i in range(4):\n    x = x + i\n    x = ext(x)\nreturn x * 2",
    "over_iter_sentinel": """
        values = [3, 2, 1, 0]
        for v in iter(lambda: values.pop(), 3):
            x = x + 1
            x = ext(x)
        return x * 2
        """,
    "over_opaque_iterable": "for v in ext([1, 1, 1]):\n    x = x + v\nreturn x * 2",
    "over_opaque_range": "for v in range(ext(3)):\n    x = x + 1\nreturn x * 2",
}
breaks.table({name: (body, {"graphs": (1, 6), "settled": 2}) for name, body in OVER.items()}, globals())

SHAPES = {
    "while_counter": (
        """
        n = 4
        while n > 0:
            x = x + 1
            x = ext(x)
            n -= 1
        return x * 2
        """,
        dict(graphs=(2, 8), settled=2),
    ),
    "while_true": (
        """
        n = 0
        while True:
            x = x + 1
            x = ext(x)
            n += 1
            if n == 3:
                break
        return x * 2
        """,
        dict(graphs=(2, 8), settled=2),
    ),
    "while_opaque": (
        """
        todo = [1, 2, 3]
        while ext(todo):
            todo.pop()
            x = x + 1
        return x * 2, todo
        """,
        dict(graphs=(2, 6), settled=2),
    ),
    "break_at_start": "for _ in range(4):\n    ext(x)\n    x = x + 1\nreturn x * 2",
    "break_only": ("for _ in range(4):\n    ext(x)\nreturn x * 2", dict(graphs=1)),
    "two_breaks": ("for _ in range(4):\n    x = ext(x + 1)\n    x = ext(x * 2)\nreturn x - 1", dict(graphs=(3, 5))),
    "before_and_after": (
        """
        y = x * 3
        for _ in range(4):
            x = x + 1
            x = ext(x)
        return x * y
        """,
        dict(graphs=(2, 4)),
    ),
    "with_break": "for i in range(10):\n    x = x + 1\n    if ext(i) == 2:\n        break\n    x = x * 2\nreturn x - 1",
    "with_continue": """
        for i in range(5):
            x = x + 1
            if ext(i) == 2:
                continue
            x = x * 2
        return x - 1
        """,
    "with_else": "for i in range(3):\n    x = x + 1\n    ext(i)\nelse:\n    x = x * 2\nreturn x - 1",
    "with_else_not_taken": """
        for i in range(3):
            x = x + 1
            ext(i)
            if i == 1:
                break
        else:
            x = x * 2
        return x - 1
        """,
    "break_in_else": "for i in range(3):\n    x = x + 1\nelse:\n    x = ext(x) * 2\nreturn x - 1",
    "return_inside": "for i in range(10):\n    x = x + 1\n    if ext(i) == 2:\n        return x * 2\nreturn x - 1",
    "unrolled_before": (
        """
        for i in range(4):
            x = x + i
        ext(x)
        for i in range(4):
            x = x * 2
        return x
        """,
        dict(graphs=2),
    ),
    "break_in_one_iteration": (
        """
        for i in range(6):
            if i == 3:
                x = ext(x)
            x = x + 1
        return x
        """,
        dict(graphs=(2, 4)),
    ),
    "break_in_first_iteration": (
        """
        for i in range(6):
            if i == 0:
                x = ext(x)
            x = x + 1
        return x
        """,
        dict(graphs=(1, 6)),
    ),
    "break_in_last_iteration": (
        """
        for i in range(6):
            x = x + 1
            if i == 5:
                x = ext(x)
        return x * 2
        """,
        dict(graphs=2),
    ),
    "nested_inner": """
        for _ in range(3):
            for _ in range(2):
                x = x + 1
                x = ext(x)
            x = x * 2
        return x - 1
        """,
    "nested_outer": "for _ in range(3):\n    for _ in range(2):\n        x = x + 1\n    x = ext(x)\nreturn x * 2",
    "nested_both": """
        for _ in range(2):
            x = ext(x)
            for _ in range(2):
                x = x + 1
                x = ext(x)
            x = x * 2
        return x - 1
        """,
    "nested_while": """
        for _ in range(3):
            n = 2
            while n:
                n -= 1
                x = x + 1
                x = ext(x)
        return x - 1
        """,
    "nested_break_inner": """
        for i in range(3):
            for j in range(3):
                if ext(j) == 1:
                    break
                x = x + 1
            x = x * 2
        return x - 1
        """,
    "nested_generators": """
        for a in numbers(2):
            for b in numbers(2):
                x = x + 1
                x = ext(x)
        return x * 2
        """,
    "in_with": """
        with contextlib.nullcontext():
            for _ in range(3):
                x = x + 1
                x = ext(x)
        return x * 2
        """,
    "with_inside": "for _ in range(3):\n    with Manager():\n        x = x + 1\n        x = ext(x)\nreturn x * 2",
    "try_inside": """
        for i in range(3):
            try:
                x = x + 1
                if i == 1:
                    boom(KeyError, i)
                x = x * 3
            except KeyError:
                x = x * 2
        return x - 1
        """,
    "try_outside": """
        try:
            for i in range(3):
                x = x + 1
                if i == 1:
                    boom(KeyError, i)
        except KeyError:
            x = x * 2
        return x - 1
        """,
    "finally_inside": """
        for i in range(3):
            try:
                x = x + 1
                if ext(i) == 1:
                    continue
                x = x * 3
            finally:
                x = x * 2
        return x - 1
        """,
    "finally_break": """
        for i in range(4):
            try:
                x = x + 1
                if ext(i) == 1:
                    break
            finally:
                x = x * 2
        return x - 1
        """,
    "list_grows": "out = []\nfor i in range(3):\n    x = x + 1\n    out.append(ext(x))\nreturn out, x",
    "list_changed_while_iterated": """
        items = [1, 2]
        for v in items:
            x = x + 1
            ext(v)
            if len(items) < 4:
                items.append(v + 2)
        return x * 2, items
        """,
    "dict_grows": "out = {}\nfor i in range(3):\n    x = x + 1\n    out[ext(i)] = x\nreturn out",
    "zip_uneven": """
        a, b = iter([1, 2, 3]), iter([1, 2])
        for p, q in zip(a, b):
            x = x + 1
            ext(p)
        return x * 2, list(a), list(b)
        """,
    "iterator_kept": """
        it = iter([1, 1, 1, 1])
        for v in it:
            x = x + v
            ext(v)
            break
        return x * 2, list(it)
        """,
    "iterator_half_before": """
        it = iter([1, 1, 1, 1])
        next(it)
        x = x + 1
        ext(x)
        for v in it:
            x = x * 2
        return x
        """,
    "generator_half_before": """
        it = numbers(5)
        next(it)
        x = x + next(it)
        ext(x)
        for v in it:
            x = x * v
        return x, list(it)
        """,
    "enumerate_kept": """
        it = enumerate([5, 6, 7, 8])
        for i, v in it:
            x = x + 1
            ext(v)
            if i == 1:
                break
        return x * 2, next(it), list(it)
        """,
    "grow_shape": (
        """
        for _ in range(3):
            x = torch.cat([x, x[:1]])
            x = ext(x)
        return x * 2
        """,
        dict(graphs=None),
    ),
    "next_in_body": """
        it = iter([1, 2, 3, 4])
        for v in it:
            x = x + v
            w = ext(next(it))
            x = x * w
        return x
        """,
    "opaque_next": "it = ext(iter([1, 1, 1]))\nfor v in it:\n    x = x + v\nreturn x * 2",
    "sleep_in_loop": "for _ in range(4):\n    x = x + 1\n    time.sleep(0)\nreturn x * 2",
    "item_in_loop": "for _ in range(3):\n    x = x + x.sum().item()\nreturn x * 2",
    "raise_leaves": "for i in range(3):\n    x = x + 1\n    if i == 1:\n        boom(KeyError, i)\nreturn x",
}


class Manager:
    def __enter__(self):
        note("enter")
        return self

    def __exit__(self, *exc):
        note("exit", exc[0])
        return False


def shape_row(row):
    body, own = row if isinstance(row, tuple) else (row, {})
    return body, {"graphs": (1, 8), "settled": 2, **own}


breaks.table({f"loop_{name}": shape_row(row) for name, row in SHAPES.items()}, globals())


@scenario(graphs=(2, 3), settled=1, captures=4)
def training_loop():
    """The classic: a loss logged with .item() in every step."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    losses = []

    def fn(x, y):
        for _ in range(5):
            loss = ((model(x) - y) ** 2).mean()
            losses.append(loss.item())
        return loss

    return Setup(fn, lambda: (t(2, 3), t(2, 1, seed=1)), watch=lambda: list(losses))


@scenario(graphs=2, settled=1)
def modules_in_loop():
    torch.manual_seed(1)
    layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))

    def fn(x):
        for layer in layers:
            x = layer(x)
        ext(x)
        for layer in layers:
            x = layer(x).relu()
        return x

    return Setup(fn, lambda: (t(2, 3),))


@scenario(graphs=(2, 6), settled=2)
def modules_in_loop_with_break():
    torch.manual_seed(1)
    layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(4))

    def fn(x):
        for layer in layers:
            x = layer(x)
            ext(x)
        return x * 2

    return Setup(fn, lambda: (t(2, 3),))


@scenario(graphs=(2, 6), settled=2)
def opaque_in_generator():
    """The break is in the generator, in the middle of the consumer's loop."""

    def produce(x):
        for _ in range(3):
            x = x + 1
            ext(x)
            yield x * 2

    def fn(x):
        total = x * 0
        for v in produce(x):
            total = total + v
        return total * 2

    return Setup(fn, lambda: (t(3),))


@case(lambda: (t(3), [1, 2, 3]), graphs=(2, 8), settled=2)
def argument_iterated(x, items):
    for v in items:
        x = x + v
        ext(v)
        items[0] += 1
    return x * 2


@case(lambda: (t(3), iter([1, 2, 3, 4])), graphs=(2, 8), settled=2)
def argument_iterator(x, it):
    for v in it:
        x = x + v
        if ext(v) == 3:
            break
    return x * 2


@case(lambda: (t(3), numbers(4)), graphs=(1, 8), settled=2, share=0.0)
def argument_generator(x, it):
    for v in it:
        x = x + v
        if ext(v) == 2:
            break
    return x * 2


test = breaks.as_test()
