"""What random programs (make fuzz) and CPython's own tests (make cpython-tests) have found."""

import collections
import operator
import types
from decimal import Decimal
from fractions import Fraction

import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


class Plain:
    pass


class OwnEquality(int):
    """A number whose comparison is its own, and whose others are int's."""

    def __eq__(self, other):
        return True

    def __lt__(self, other):
        return int(self) > int(other)

    __hash__ = int.__hash__


class OwnText(str):
    def __iter__(self):
        return iter([1, 2])

    def __format__(self, spec):
        return "formatted"


class DictIsSelf(dict):
    def __init__(self):
        self.__dict__ = self


class CallsItself:
    pass


CallsItself.__call__ = CallsItself()


def holds_itself():
    made = [1]
    made.append(made)
    return made


# ---- errors of tensor operations ---------------------------------------------------------------------------------------


@case(lambda: (t(3), t(4)))
def bad_shapes_caught(x, y):
    said = []
    for op in (torch.add, torch.matmul, lambda a, b: torch.cat([a, b[None]]), lambda a, b: a.view(2), lambda a, b: a[5], lambda a, b: a.sum(5)):
        try:
            op(x, y)
        except (RuntimeError, IndexError) as error:
            said.append((type(error), str(error)))
    return x * 2, said


@case(lambda: (t(3), t(4)), graphs=0, captures=(1, 0))
def bad_shapes_through_with(x, y):
    with torch.no_grad():
        return x + y


# ---- containers that hold themselves -----------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="RecursionLimit")
def compares_lists_that_hold_themselves(x):
    try:
        return x * 2, holds_itself() == holds_itself()
    except RecursionError as error:
        return x * 2, type(error)


@case(lambda: (t(3),), skip="OperandKind")
def gives_torch_a_list_that_holds_itself(x):
    try:
        return torch.cat(holds_itself())
    except TypeError as error:
        return x * 2, type(error)


@case(lambda: (t(3),), skip="RecursionLimit")
def object_that_calls_itself(x):
    try:
        CallsItself()()
    except RecursionError as error:
        return x * 2, type(error)


@case(lambda: (t(3),), skip="*")
def object_that_is_its_own_dict(x):
    made = DictIsSelf()
    made.x = x * 2
    return made["x"], made.x


# ---- long loops --------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), skip="LongLoop")
def long_loop(x):
    x = x + 1
    total = 0
    for i in range(200_000):
        total += i % 3
    return x * total


@case(lambda: (t(3),), skip="LongLoop")
def long_loop_with_calls(x):
    def step(total, i):
        return total + i % 3

    x = x + 1
    total = 0
    for i in range(100_000):
        total = step(total, i)
    return x * total


@case(lambda: (t(3),), skip="UnsupportedOperator")
def list_repeated_without_bound(x):
    try:
        [0] * (1 << 62)
    except MemoryError:
        return x * 2


@case(lambda: (t(3),))
def long_list_built_and_used_up(x):
    items = [i for i in range(3000)]
    kept = tuple(items)
    total = 0
    while items:
        total += items.pop()
    return x * total, kept


# ---- iterators that notice changes -------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def dict_keys_changed_while_iterating(x):
    table, turns = {0: 0}, 0
    try:
        for _ in table:
            del table[0]
            table[0] = 0
            turns += 1
    except RuntimeError as error:
        return x * turns, str(error)


@case(lambda: (t(3),))
def deque_changed_while_iterating(x):
    queue = collections.deque([1, 2, 3])
    first = iter(queue)
    next(first)
    queue.append(4)
    try:
        next(first)
    except RuntimeError as error:
        return x * len(queue), str(error)


# ---- objects of C types ------------------------------------------------------------------------------------------------


@scenario(skip="*")
def decimals_and_fractions():
    d, f = Decimal("2.5"), Fraction(1, 2)

    def run(x):
        return x * 2, d + 1, d < 3, -d, d > d, f + 1, f < 3, d == 2

    return Setup(run, lambda: (t(3),))


@scenario(skip="*")
def bytearrays():
    data = bytearray(b"abc")

    def run(x):
        made = bytearray(data)
        del made[0]
        made[0] = 1
        return x * 2, data + b"x", data * 2, data == b"abc", made, made < b"zz", b"%s" % data

    return Setup(run, lambda: (t(3),))


@case(lambda: (t(3),), skip="*")
def operand_types_that_do_not_fit(x):
    said = []
    for a, b in (([1], (2,)), ("x", Plain()), ((), [1]), ({}, 1)):
        for op in (operator.add, operator.mul, operator.lt):
            try:
                op(a, b)
            except TypeError as error:
                said.append(str(error).replace(repr(b), "b"))
    return x * 2, said


@case(lambda: (t(3),))
def number_class_with_own_comparison(x):
    a, b = OwnEquality(1), OwnEquality(2)
    return x * 2, a == b, a != b, a < b, int(max(a, b)), [int(v) for v in sorted([b, a])]


@case(lambda: (t(3),))
def text_class_with_own_methods(x):
    text = OwnText("ab")
    return x * 2, list(text), "{}".format(text), f"{text}", ",".join(["q", text])


@scenario()
def integers_are_not_multiplied_in_place_by_a_float():
    log = []

    def run(x):
        x.copy_(2.0 * x)
        try:
            log.append("in")
            x.mul_(0.5)
        except RuntimeError as error:
            log.append(str(error))
        return x + 1

    return Setup(run, lambda: (t(3, dtype=torch.int64),), watch=lambda: list(log))


@case(lambda: (t(3), [5]))
def a_bool_is_no_factor(x, items):
    x.add_(1)
    items.append(4)
    try:
        return torch.add(x, x, alpha=True)
    except RuntimeError as error:
        return str(error), x + 1


@case(lambda: (t(3, 3), []), skip="*")
def in_place_on_overlapping_views(x, log):
    first, second = x[0], x[1]
    first.add_(second)
    x[:, 0].mul_(x[:, 1])
    for write in (lambda: first.add_(first.unsqueeze(0)), lambda: x[1:].add_(x[:-1]), lambda: first[1:].mul_(first[:2])):
        try:
            log.append(1)
            write()
        except RuntimeError as error:
            log.append(str(error))
    return x + 1


# ---- attributes and cells ----------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def class_of_containers(x):
    made = [{}, [], (), set()]
    return x * 2, [getattr(v, "__class__") for v in made], [hasattr(v, "__class__") for v in made]


@case(lambda: (t(3),))
def named_tuple_made_and_compared(x):
    Pair = collections.namedtuple("Pair", "a b")
    made = Pair(1, 2)
    return x * made.b, made == made, made == Pair._make([1, 2]), made._replace(a=3) == (3, 2)


@scenario()
def empty_cell():
    cell = types.CellType()

    def run(x):
        try:
            return cell.cell_contents
        except ValueError as error:
            return x * 2, str(error)

    return Setup(run, lambda: (t(3),))


@case(lambda: (t(3),))
def super_after_self_is_deleted(x):
    class Base:
        def method(self):
            del self
            super()

    try:
        Base().method()
    except RuntimeError as error:
        return x * 2, str(error)


@case(lambda: (t(3),), skip="*")
def annotations_of_a_module(x):
    module = types.ModuleType("made")
    return x * 2, module.__annotations__, "__annotations__" in module.__dict__


test_fuzz_found = cases.as_test(__name__)
