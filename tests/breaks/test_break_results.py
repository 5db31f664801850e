"""A special method breaks, and the instruction that called it has more to do with the result: a reflected method, an error of its own."""

# The rows of the table use the names imported here.
# ruff: noqa: F401

import torch
from harness import Breaks, ext, note, t

breaks = Breaks()


class Deaf:
    def __add__(self, other):
        ext(0)
        return NotImplemented


class Answers:
    def __radd__(self, other):
        return ext("radd")


class BadInit:
    def __init__(self):
        ext(0)
        return 3


class BadTruth:
    def __bool__(self):
        ext(0)
        return 5


def generated():
    yield 0
    yield 1


breaks.table(
    {
        "reflected_after_a_break": "y = x + 1\nr = Deaf() + Answers()\nreturn y * 2, r",
        "no_method_answers": "y = x + 1\ntry:\n    Deaf() + 3\nexcept TypeError as e:\n    return y * 2, str(e)",
        "init_returns_something": "y = x + 1\ntry:\n    BadInit()\nexcept TypeError as e:\n    return y * 2, str(e)",
        "truth_is_no_bool": "y = x + 1\ntry:\n    if BadTruth():\n        y = y * 3\nexcept TypeError as e:\n    return y * 2, str(e)",
        "thrown_through_a_generator": (
            "y = x + 1\ng = generated()\nnext(g)\ntry:\n    g.throw(ValueError(7))\nexcept ValueError as e:\n    return y * ext(2), e.args"
        ),
        "thrown_out_of_the_function": "y = x + 1\ng = generated()\nnext(g)\nnote(y)\ng.throw(ValueError(7))",
    },
    globals(),
    graphs=(1, 4),
    share=0,
    breaks=None,
)

test = breaks.as_test()
