"""Types with named items made in C, typing's generics, legacy tensor classes, out= of several tensors."""

import collections.abc
import os
import time
import typing

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario

T = typing.TypeVar("T")


# ---- types with named items ---------------------------------------------------------------------------------------------


@case(lambda: (t(3), t(3, seed=1)))
def made_of_its_items(x, y):
    pair = torch.return_types.max([x + 1, y + 2])
    return pair, pair.values, pair[1], type(pair)


@case(lambda: (t(3, 2),))
def taken_apart_and_made_again(x):
    found = torch.max(x, 0)
    again = type(found)(list(found))
    return again.values + 1, again.indices, isinstance(again, tuple), len(again)


@case(lambda: (t(3), os.stat("/")))
def items_without_a_place(x, info):
    return x + info.st_size * 0, info.st_mtime > 0, info.st_mtime_ns // 10**9 > 0, info[0] == info.st_mode


@case(lambda: (t(3), time.gmtime(0)))
def of_the_library(x, when):
    return x + when.tm_year, when.tm_zone, when[0]


@case(lambda: (t(3),), graphs=0, skip="*", captures=(0, 0))
def made_of_too_few_items(x):
    return torch.return_types.max([x])


# ---- generics ----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def annotations(x):
    def first(f: typing.Callable[[T], T], y: typing.List[int], z: typing.Optional[T] = None) -> typing.Dict[str, T]:  # noqa: UP006, UP045
        return f(x + 1)

    def second(f: collections.abc.Callable[[T, int], T], y: list[T] | None, z: int | None = None) -> tuple[T, ...]:
        return first(lambda v: v * 2, [])

    return second(None, []), first.__annotations__, second.__annotations__


class Box(typing.Generic[T]):
    def __init__(self, value):
        self.value = value


@case(lambda: (t(3),))
def generic_classes(x):
    return Box[int](x + 1).value, typing.List[int] == typing.List[int]  # noqa: UP006


# ---- legacy classes ----------------------------------------------------------------------------------------------------


@case(lambda: (t(3),))
def legacy_classes_of_results(x):
    return [isinstance(x.to(d), c) for d in (torch.float32, torch.int64) for c in (torch.FloatTensor, torch.LongTensor, torch.cuda.FloatTensor)]


@scenario(graphs=0, captures=(1, 0), after_change=(1,))
def legacy_classes_of_inputs():
    given = [t(3)]

    def fn(x):
        return isinstance(x, torch.FloatTensor), isinstance(x, torch.DoubleTensor)

    return Setup(fn, lambda: (given[0],), changes=[lambda: given.__setitem__(0, t(3).double())])


# ---- out= --------------------------------------------------------------------------------------------------------------


@case(lambda: (t(3, 5),))
def out_is_resized(x):
    out = torch.empty(0)
    given = torch.sin(x, out=out)
    return out.shape, out + 1, given is out


@case(lambda: (t(3, 5),))
def out_of_two(x):
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.long)
    found = torch.sort(x, out=(values, indices))
    return values.shape, indices.shape, found.values is values, found[1] is indices, values + 1, type(found)


@case(lambda: (t(3, 5), t(5, seed=2), torch.zeros(5, dtype=torch.long)))
def out_of_inputs(x, values, indices):
    torch.max(x, 0, out=(values, indices))
    return values + 1, indices


@scenario()
def operators_that_are_found_late():
    lib = torch.library.Library("cdynamo_found_late", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    vars(torch.ops).pop("cdynamo_found_late", None)
    return Setup(lambda x: torch.ops.cdynamo_found_late.twice(x) + 1, lambda: (t(3),), cleanup=lib._destroy)


@case(lambda: (t(4),))
def reserved_names(x):
    y = x.clone()
    torch.manual_seed
    return y.uniform_(**{"from": 1.0, "to": 1.0}) + 1


test_named_items = cases.as_test(__name__)
