"""The normal form as text: what the interpreter reads."""

import sys

import pytest

NEW = sys.version_info >= (3, 12)


def check(rooms, function, expected):
    lines = [line.strip() for line in expected.split("\n") if line.strip()]
    assert rooms.dump(function.__code__).strip().split("\n") == lines


def test_calls_have_no_null(rooms):
    def f(a, b):
        return print(a.m(b), k=b)(*a)

    check(
        rooms,
        f,
        """
        0: Resume 0
        1  LoadGlobal print
        2  LoadFast a
        3  LoadMethod m
        4  LoadFast b
        5  Call 1
        6  LoadFast b
        7  Call 2 ('k',)
        8  LoadFast a
        9  CallFunctionEx 0
        10  ReturnValue
    """,
    )


def test_a_call_without_null_counts_its_first_argument(rooms):
    scope = {}
    exec("def f(a):\n    assert a, 'text'", scope)  # not the assert that pytest rewrites
    f = scope["f"]

    check(
        rooms,
        f,
        """
        0: Resume 0
        1  LoadFast a
        2  PopJumpIfTrue -> 7
        3  LoadAssertionError
        4  LoadConst 'text'
        5  Call 1
        6  RaiseVarargs 1
        7: LoadConst None
        8  ReturnValue
    """,
    )


def test_loop_and_slices(rooms):
    def f(a):
        for x in a[1:2]:
            a[x:] = x

    check(
        rooms,
        f,
        """
        0: Resume 0
        1  LoadFast a
        2  LoadConst 1
        3  LoadConst 2
        4  BuildSlice 2
        5  BinarySubscr
        6  GetIter
        7: ForIter -> 16
        8  StoreFast x
        9  LoadFast x
        10  LoadFast a
        11  LoadFast x
        12  LoadConst None
        13  BuildSlice 2
        14  StoreSubscr
        15  JumpBackward -> 7
        16: LoadConst None
        17  ReturnValue
    """,
    )


def test_with_has_handlers(rooms):
    def f(a):
        with a:
            b()  # noqa: F821

    check(
        rooms,
        f,
        """
        0: Resume 0
        1  LoadFast a
        2  BeforeWith
        3  PopTop !14@1+lasti
        4  LoadGlobal b !14@1+lasti
        5  Call 0 !14@1+lasti
        6  PopTop !14@1+lasti
        7  LoadConst None
        8  LoadConst None
        9  LoadConst None
        10  Call 3
        11  PopTop
        12  LoadConst None
        13  ReturnValue
    """
        + (
            """
        14: PushExcInfo !24@3+lasti
        15  WithExceptStart !24@3+lasti
        16  PopJumpIfTrue -> 18 !24@3+lasti
        17  Reraise 2 !24@3+lasti
        18: PopTop !24@3+lasti
        19  PopExcept
        20  PopTop
        21  PopTop
        22  LoadConst None
        23  ReturnValue
        24: Copy 3
        25  PopExcept
        26  Reraise 1
    """
            if NEW
            else """
        14: PushExcInfo !18@3+lasti
        15  WithExceptStart !18@3+lasti
        16  PopJumpIfTrue -> 21 !18@3+lasti
        17  Reraise 2 !18@3+lasti
        18: Copy 3
        19  PopExcept
        20  Reraise 1
        21: PopTop !18@3+lasti
        22  PopExcept
        23  PopTop
        24  PopTop
        25  LoadConst None
        26  ReturnValue
    """
        ),
    )


def test_await_ends_in_end_send(rooms):
    async def f(a, b):
        return a or await b

    names = [line.split()[1] for line in rooms.dump(f.__code__).strip().split("\n")]
    send = names.index("Send")
    instrs, _ = rooms.decode(f.__code__)
    end = instrs[send][3]
    assert instrs[end][0] == "EndSend" and instrs[end][6] == instrs[send][6]
    # The short cut of `or` goes past the EndSend.
    jumps = [i for i in instrs if i[0] in ("JumpIfTrueOrPop", "PopJumpIfTrue")]
    assert [i[3] for i in jumps] == [end + 1]


def test_super(rooms):
    class A:
        def f(self):
            return super().f(1)

    names = [i[:2] for i in rooms.decode(A.f.__code__)[0]]
    if NEW:
        assert [n for n in names if n[0] in ("Call", "LoadMethod")] == [("Call", 2), ("LoadMethod", 0), ("Call", 1)]
    else:
        assert [n for n in names if n[0] in ("Call", "LoadMethod")] == [("Call", 0), ("LoadMethod", 0), ("Call", 1)]


def test_comparisons_are_numbered(rooms):
    def f(a, b):
        return a < b, a <= b, a == b, a != b, a > b, a >= b, a is not b, a not in b

    got = [i[:2] for i in rooms.decode(f.__code__)[0] if i[0].endswith("Op")]
    assert got == [*(("CompareOp", n) for n in range(6)), ("IsOp", 1), ("ContainsOp", 1)]


def test_no_op_of_the_other_form_is_left(rooms):
    def f(a):
        print(+a, [*a], f"{a}")
        yield from a

    names = {i[0] for i in rooms.decode(f.__code__)[0]}
    assert {"UnaryPositive", "ListExtend", "Send", "EndSend"} <= names


@pytest.mark.parametrize("index,expected", [(0, ["a"]), (3, ["a", "t"]), (-2, ["t"])])
def test_liveness(rooms, index, expected):
    def f(a, unused):
        t = a + 1
        u = a  # noqa: F841
        return t

    instrs, _ = rooms.decode(f.__code__)
    at = index if index >= 0 else len(instrs) + index
    at = {0: 0, 3: next(i for i, x in enumerate(instrs) if x[0] == "StoreFast") + 1}.get(index, at)
    assert rooms.live_names(f.__code__, at) == expected


def test_liveness_sees_handlers_and_cells(rooms):
    def f(a):
        x = 1
        y = 2
        try:
            x = a()
        except ValueError:
            return x
        return lambda: y

    instrs, _ = rooms.decode(f.__code__)
    call = next(i for i, ins in enumerate(instrs) if ins[0] == "Call")
    assert set(rooms.live_names(f.__code__, call)) == {"x", "y"}


def test_byte_offsets_find_their_instruction(rooms):
    def f(a, b):
        return a.nothing if b else len(a)

    for args, op in [((1, 0), "Call"), ((1, 1), "LoadAttr")]:
        for _ in range(30):  # specialised code raises elsewhere: 3.11 in PRECALL
            with pytest.raises((TypeError, AttributeError)) as caught:
                f(*args)
            at = rooms.index_of(f.__code__, caught.tb.tb_next.tb_lasti)
            assert rooms.decode(f.__code__)[0][at][0] == op
            f("", 0)
    assert rooms.index_of(f.__code__, -1) == -1 and rooms.index_of(f.__code__, 10_000) == -1
