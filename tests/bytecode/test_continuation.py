"""Entering a copy of a function in its middle, the way a continuation does after a break."""

import types


def go_on(rooms, function, index, stack, **live):
    code = rooms.continuation(function.__code__, index)
    rooms.verify(code)
    made = types.FunctionType(code, function.__globals__, "continuation", None, function.__closure__)
    return made(**live, stack=stack)


def find(rooms, function, op, after=0):
    instrs, _ = rooms.decode(function.__code__)
    return next(i for i, ins in enumerate(instrs) if i >= after and ins[0] == op)


def test_in_a_loop(rooms):
    def f(items):
        total = 0
        for item in items:
            total += item
        return total

    at = find(rooms, f, "ForIter")
    assert go_on(rooms, f, at, (iter([1, 2, 3]),), total=10) == 16


def test_inside_the_arguments_of_a_call(rooms):
    def f(a, b):
        return max(a, b(a), key=abs)

    at = find(rooms, f, "Call") + 1  # [max, a, result of b]
    assert go_on(rooms, f, at, (max, 1, -5)) == -5


def test_before_a_call_without_arguments(rooms):
    def f(a):
        return a.b()

    at = find(rooms, f, "Call")
    assert go_on(rooms, f, at, ("abc".upper,)) == "ABC"


def test_before_call_ex(rooms):
    def f(a, b, c):
        return a(*b, **c)

    at = find(rooms, f, "CallFunctionEx")
    assert go_on(rooms, f, at, (dict, (), {"x": 1})) == {"x": 1}


def test_inside_with(rooms):
    log = []

    class Manager:
        def __enter__(self):
            log.append("enter")

        def __exit__(self, *error):
            log.append(error[0])
            return True

    def f(a, b):
        with a:
            b()
        return "done"

    at = find(rooms, f, "PopTop", find(rooms, f, "BeforeWith")) + 1
    exit_ = Manager().__exit__
    assert go_on(rooms, f, at, (exit_,), b=lambda: 1 / 0) == "done"
    assert go_on(rooms, f, at, (exit_,), b=lambda: 1) == "done"
    assert log == [ZeroDivisionError, None]


def test_inside_try_in_a_loop_with_a_free_variable(rooms):
    outer = 100

    def f(items):
        bad = 0
        for item in items:
            try:
                item()
            except ZeroDivisionError:
                bad += outer
            finally:
                bad += 1
        return bad

    at = find(rooms, f, "Call")
    stack = (iter([lambda: 1, lambda: 1 / 0]), lambda: 1 / 0)
    assert go_on(rooms, f, at, stack, bad=0) == 203


def test_every_instruction_of_the_library_can_be_an_entry(rooms):
    import dataclasses
    import json.decoder
    import textwrap

    def codes(code):
        yield code
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                yield from codes(const)

    made = 0
    for module in (textwrap, json.decoder, dataclasses):
        for member in vars(module).values():
            if not isinstance(member, types.FunctionType):
                continue
            for code in codes(member.__code__):
                if code.co_flags & 0x2A0:  # generators and coroutines start with their own prologue
                    continue
                for index in range(2, len(rooms.decode(code)[0])):
                    rooms.verify(rooms.continuation(code, index))
                    made += 1
                    if made % 500 == 0:
                        rooms.clear_decode_cache()
    assert made > 2000
