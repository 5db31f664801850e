"""Instructions written by hand: forms that no compiler writes must come out right too."""

import sys
import types

import pytest


def template(a=None, b=None, c=None):
    pass


def written(rooms, like, instrs, handlers=()):
    full = [(name, *rest, *(0, None, -1)[len(rest) :]) for name, *rest in instrs]
    code = rooms.assemble(like.__code__, full, list(handlers))
    rooms.verify(code)
    return types.FunctionType(code, globals(), "made", like.__defaults__)


def const(value):
    return ("LoadConst", 0, value)


def slot(n):
    return ("LoadFast", n)


def pairs(*args, **kwargs):
    return args, kwargs


def test_call_without_arguments(rooms):
    f = written(rooms, template, [("Resume",), slot(0), ("Call", 0), ("ReturnValue",)])
    assert f(lambda: 7) == 7


def test_call_of_a_copied_callable(rooms):
    # The callable is copied, so its NULL can only be put under it at the call.
    f = written(rooms, template, [("Resume",), slot(0), ("Copy", 1), ("Call", 0), ("PopTop",), ("Call", 0), ("ReturnValue",)])
    calls = []
    assert f(lambda: calls.append(1) or len(calls)) == 2


def test_call_ex_of_a_swapped_callable(rooms):
    f = written(
        rooms,
        template,
        [("Resume",), slot(1), slot(2), slot(0), ("Swap", 3), ("Swap", 2), ("Copy", 3), ("PopTop",), ("CallFunctionEx", 1), ("ReturnValue",)],
    )
    # stack: args kwargs f -> f kwargs args -> f args kwargs
    assert f(pairs, (1, 2), {"x": 3}) == ((1, 2), {"x": 3})


def test_call_chooses_between_two_callables(rooms):
    f = written(
        rooms, template, [("Resume",), slot(2), ("PopJumpIfTrue", 0, None, 5), slot(0), ("Jump", 0, None, 6), slot(1), ("Call", 0), ("ReturnValue",)]
    )
    assert f(lambda: 1, lambda: 2, False) == 1 and f(lambda: 1, lambda: 2, True) == 2


def test_keywords_only(rooms):
    f = written(rooms, template, [("Resume",), slot(0), ("Copy", 1), ("PopTop",), const(1), const(2), ("Call", 2, ("x", "y")), ("ReturnValue",)])
    for _ in range(50):  # long enough to be specialised
        assert f(pairs) == ((), {"x": 1, "y": 2})


def test_load_method_that_is_not_called(rooms):
    f = written(rooms, template, [("Resume",), slot(0), ("LoadMethod", 0, "append"), ("ReturnValue",)])
    items = []
    f(items)(3)
    assert items == [3]


def test_load_method_in_call_ex(rooms):
    f = written(rooms, template, [("Resume",), slot(0), ("LoadMethod", 0, "append"), slot(1), ("CallFunctionEx", 0), ("ReturnValue",)])
    items = []
    f(items, (4,))
    assert items == [4]


def test_attribute_in_call_ex(rooms):
    f = written(rooms, template, [("Resume",), const("{}{}"), ("LoadAttr", 0, "format"), slot(1), slot(2), ("CallFunctionEx", 1), ("ReturnValue",)])
    assert f(None, (1, 2), {}) == "12"


def test_conditional_jump_backwards(rooms):
    f = written(
        rooms,
        template,
        [
            ("Resume",),
            slot(0),
            const(1),
            ("BinaryOp", 0),
            ("StoreFast", 0),  # 1: a = a + 1
            slot(0),
            slot(1),
            ("CompareOp", 0),
            ("PopJumpIfTrue", 0, None, 1),
            slot(0),
            ("ReturnValue",),
        ],
    )
    assert f(0, 10) == 10


@pytest.mark.parametrize("op,values", [("JumpIfTrueOrPop", (0, 5, 5)), ("JumpIfFalseOrPop", (3, 0, 0))])
def test_jump_or_pop(rooms, op, values):
    f = written(rooms, template, [("Resume",), slot(0), (op, 0, None, 4), slot(1), ("ReturnValue",)])
    a, b, expected = values
    assert f(a, b) == expected and f(b, a) == expected


def test_for_iter_whose_exit_is_fallen_into(rooms):
    f = written(
        rooms,
        template,
        [
            ("Resume",),
            slot(0),
            ("GetIter",),
            ("ForIter", 0, None, 9),
            ("StoreFast", 1),
            slot(1),
            ("PopJumpIfTrue", 0, None, 3),
            ("PopTop",),
            ("Nop",),
            slot(1),
            ("ReturnValue",),
        ],
    )
    assert f([1, 2, 3]) == 3 and f([1, 0, 3]) == 0


def test_handler_depth_is_found(rooms):
    f = written(
        rooms,
        template,
        [
            ("Resume",),
            const("kept"),
            const(1),  # 0 1 2
            slot(0),
            ("Call", 0),
            ("PopTop",),  # 3 4 5: try
            ("BuildTuple", 2),
            ("ReturnValue",),  # 6 7
            ("PushExcInfo",),
            ("Swap", 2),
            ("PopExcept",),
            ("BuildTuple", 3),
            ("ReturnValue",),  # 8 .. 12
        ],
        [(3, 6, 8, -1, False)],
    )
    assert f(lambda: 0) == ("kept", 1)
    kept, one, error = f(lambda: 1 / 0)
    assert (kept, one) == ("kept", 1) and isinstance(error, ZeroDivisionError)


def test_handler_under_a_pending_call(rooms):
    # A callable with its NULL lies under the region: the table's depth must count it.
    f = written(
        rooms,
        template,
        [
            ("Resume",),
            ("LoadGlobal", 0, "pairs"),
            const(1),  # 0 1 2
            slot(0),
            ("Call", 0),
            ("Call", 2),
            ("ReturnValue",),  # 3 4: try, 5 6
            ("PushExcInfo",),
            ("PopTop",),
            ("PopExcept",),
            const("failed"),
            ("Call", 2),
            ("ReturnValue",),
        ],
        [(3, 5, 7, -1, False)],
    )
    assert f(lambda: 2) == ((1, 2), {})
    assert f(lambda: 1 / 0) == ((1, "failed"), {})


def test_nested_regions_that_start_together(rooms):
    f = written(
        rooms,
        template,
        [
            ("Resume",),
            const("kept"),  # 0 1
            slot(0),
            ("Call", 0),
            ("PopTop",),  # 2 3 4: inner and outer
            slot(1),
            ("Call", 0),
            ("ReturnValue",),  # 5 6 7: outer
            ("PushExcInfo",),
            ("PopTop",),
            ("PopExcept",),
            const("inner"),
            ("BuildTuple", 2),
            ("ReturnValue",),
            ("PushExcInfo",),
            ("PopTop",),
            ("PopExcept",),
            const("outer"),
            ("BuildTuple", 2),
            ("ReturnValue",),
        ],
        [(2, 8, 14, -1, False), (2, 5, 8, -1, False)],
    )
    good, bad = (lambda: 1), (lambda: 1 / 0)
    assert f(good, good) == 1
    assert f(bad, good) == ("kept", "inner")
    assert f(good, bad) == ("kept", "outer")


def test_unbound_local_raises(rooms):
    def like(a):
        b = a
        return b

    f = written(rooms, like, [("Resume",), slot(1), ("ReturnValue",)])
    with pytest.raises(UnboundLocalError):
        f(1)
    f = written(rooms, like, [("Resume",), slot(0), ("PopJumpIfTrue", 0, None, 5), const(3), ("StoreFast", 1), slot(1), ("ReturnValue",)])
    assert f(0) == 3
    with pytest.raises(UnboundLocalError):
        f(1)


def test_long_code_needs_extended_arguments(rooms):
    body = []
    for i in range(700):
        body += [const(1000 + i), ("StoreFast", 1)]
    last = 1 + 2 + len(body)
    f = written(rooms, template, [("Resume",), slot(0), ("PopJumpIfTrue", 0, None, last), *body, slot(1), ("ReturnValue",)])
    assert f(0) == 1699 and f(1) is None


def test_unreachable_code_is_dropped(rooms):
    f = written(rooms, template, [("Resume",), const(1), ("ReturnValue",), ("PopTop",), ("Call", 9), ("Jump", 0, None, 1)])
    assert f() == 1 and len(rooms.decode(f.__code__)[0]) == 3


@pytest.mark.parametrize(
    "bad",
    [
        [("Resume",), ("PopTop",), ("ReturnValue",)],
        [("Resume",), const(1)],
        [("Resume",), slot(0), ("PopJumpIfTrue", 0, None, 4), const(1), const(2), ("ReturnValue",)],
    ],
)
def test_nonsense_is_refused(rooms, bad):
    with pytest.raises(RuntimeError):
        written(rooms, template, bad)


def test_verify_sees_a_small_stack(rooms):
    code = (lambda a: [a, a, a, a]).__code__
    rooms.verify(code)
    with pytest.raises(RuntimeError, match="stacksize"):
        rooms.verify(code.replace(co_stacksize=2))


def test_specialised_and_instrumented_code_decodes_the_same(rooms):
    def f(items):
        total = 0
        for item in items:
            total += item.bit_length() + len(items)
        return total

    before = rooms.decode(f.__code__)
    for _ in range(200):
        f([1, 2, 3])
    rooms.clear_decode_cache()
    assert rooms.decode(f.__code__) == before
    if sys.version_info >= (3, 12):
        seen = []
        sys.settrace(lambda *a: seen.append(a[1]) or None)
        try:
            f([1])
            rooms.clear_decode_cache()
            assert rooms.decode(f.__code__) == before
        finally:
            sys.settrace(None)
