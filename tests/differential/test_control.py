"""Control flow, comprehensions, generators, context managers, exceptions, strings, imports, globals."""

import contextlib
import sys

import torch
from differ import Cases, Setup, t

cases = Cases()
case, scenario = cases.case, cases.scenario

COUNTER = 0
SCALE = 3
TABLE = {"k": 2}
WEIGHT = t(3, seed=8)


# ---- branches and loops ----


@case(lambda: (t(3), 5))
def if_elif_else(x, n):
    if n < 2:
        return x
    elif n == 5:
        x = x * 2
    else:
        x = x + 1
    return x if n else -x


@case(lambda: (t(3), 5))
def for_else_break_continue(x, n):
    for i in range(n):
        if i == 1:
            continue
        if i == 3:
            break
        x = x + i
    else:
        x = x * 100
    for _ in []:
        pass
    else:
        x = x + 1000
    return x


@case(lambda: (t(3), 5))
def while_loop(x, n):
    while n > 0:
        x = x + n
        n -= 2
    else:
        x = x * 2
    return x, n


@case(lambda: (t(3),))
def nested_loops(x):
    out = []
    for i in range(3):
        for j in range(i, 3):
            out.append(x * i + j)
    return out


@case(lambda: (t(3), 3))
def match_statement(x, n):
    out = []
    for v in (n, "a", [1, 2, 3], {"k": 5, "z": 1}, (1, (2, 3)), None, 2.5):
        match v:
            case 3:
                out.append("three")
            case str() as s:
                out.append(s)
            case [a, *rest]:
                out.append((a, rest))
            case {"k": k, **others}:
                out.append((k, others))
            case None | False:
                out.append("none")
            case float(f) if f > 2:
                out.append(f)
    return x + 1, out


@case(lambda: (t(3),))
def boolean_logic(x):
    a, b = 0, [1]
    return x + 1, a or b, a and b, not a, bool(b), b or 1 / 0, (a or None), 1 if b else 2


@case(lambda: (t(3),), skip="DataDependentBranch")
def branch_on_tensor(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@case(lambda: (t(3),))
def branch_on_shape(x):
    if x.shape[0] > 2 and x.dim() == 1 and x.dtype == torch.float32:
        return x + 1
    return x - 1


@case(lambda: (t(3),), skip="ScalarRead")
def item_read(x):
    return x * x.sum().item()


@case(lambda: (t(3),))
def assert_statement(x):
    assert x.shape[0] == 3, "shape"
    try:
        assert x.shape[0] == 4, "wrong"
    except AssertionError as error:
        return x + 1, error.args


# ---- comprehensions and generators ----


@case(lambda: (t(3), [1, 2, 3]))
def comprehensions(x, items):
    return (
        [x * i for i in items if i > 1],
        {i: x + i for i in items},
        {i % 2 for i in items},
        [[j for j in range(i)] for i in items],
        [i for row in [[1, 2], [3]] for i in row],
        sum(i for i in items),
        tuple(i * 2 for i in items),
    )


@case(lambda: (t(3),))
def comprehension_scope(x):
    i = 10
    a = [i for i in range(3)]
    k = 2
    b = [(lambda: i * k)() for i in range(3)]
    return x * i, a, b


@case(lambda: (t(3),))
def generator_consumed(x):
    def gen(n):
        for i in range(n):
            got = yield x * i
            assert got is None
        return "done"

    def outer():
        value = yield from gen(2)
        yield value

    return list(gen(3)), list(outer()), next(gen(5)), sum(gen(3))


@case(lambda: (t(3),))
def generator_send_throw_close(x):
    log = []

    def gen():
        try:
            got = yield 1
            log.append(got)
            try:
                yield 2
            except ValueError as error:
                log.append(str(error))
                yield 3
        finally:
            log.append("closed")

    g = gen()
    a = next(g)
    b = g.send("hello")
    c = g.throw(ValueError("thrown"))
    g.close()
    return a, b, c, log, x + 1


@case(lambda: (t(3),))
def generator_return_value(x):
    def gen():
        yield 1
        return 5

    g = gen()
    next(g)
    try:
        next(g)
    except StopIteration as stop:
        return x * stop.value


@case(lambda: (t(3),))
def generator_raises_stop_iteration(x):
    def gen():
        yield 1
        raise StopIteration(4)

    try:
        list(gen())
    except RuntimeError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def generator_with_default_next(x):
    g = (i for i in [1])
    return next(g), next(g, "end"), next(iter([]), None), x + 1


@case(lambda: (t(3),))
def generator_partly_consumed(x):
    def gen():
        log.append("start")
        yield 1
        log.append("middle")
        yield 2
        log.append("end")

    log = []
    g = gen()
    a = next(g)
    for i in g:
        a += i
        break
    return x * a, log


@case(lambda: (t(3),))
def lazy_order_of_effects(x):
    log = []

    def note(v):
        log.append(v)
        return v

    pairs = zip((note(("a", i)) for i in range(2)), (note(("b", i)) for i in range(2)))
    out = list(pairs)
    m = map(note, [1, 2])
    log.append("before map")
    list(m)
    return x + 1, log, out


# ---- context managers ----


@contextlib.contextmanager
def scaled(log, k):
    log.append("enter")
    try:
        yield k
    finally:
        log.append("exit")


class Manager:
    def __init__(self, swallow=False):
        self.swallow = swallow
        self.log = []

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, tb):
        self.log.append(kind and kind.__name__)
        return self.swallow


@case(lambda: (t(3), []))
def contextmanager_function(x, log):
    with scaled(log, 2) as k:
        y = x * k
    return y


@case(lambda: (t(3), Manager()))
def manager_class(x, m):
    with m as got:
        y = x * 2
    return y, got is m


@case(lambda: (t(3),))
def manager_swallows(x):
    m = Manager(swallow=True)
    with m:
        raise ValueError("gone")
    return x + 1, m.log


@case(lambda: (t(3),))
def manager_sees_exception(x):
    m = Manager()
    try:
        with m:
            raise KeyError("k")
    except KeyError as error:
        return x + 1, m.log, error.args


@case(lambda: (t(3),))
def return_through_with(x):
    m = Manager()

    def g():
        with m, contextlib.nullcontext(5) as five:
            return x * five

    return g(), m.log


@case(lambda: (t(3),))
def suppress_and_exitstack(x):
    log = []
    with contextlib.suppress(KeyError):
        {}["q"]
        log.append("never")
    return x + 1, log


@case(lambda: (t(3),))
def exit_stack(x):
    log = []
    with contextlib.ExitStack() as stack:
        k = stack.enter_context(scaled(log, 3))
        stack.callback(log.append, "callback")
        y = x * k
    return y, log


# ---- exceptions ----


@case(lambda: (t(3),))
def try_except_else_finally(x):
    log = []
    for bad in (False, True):
        try:
            if bad:
                raise ValueError("v", 1)
            log.append("body")
        except ValueError as error:
            log.append(error.args)
        else:
            log.append("else")
        finally:
            log.append("finally")
    return x + 1, log


@case(lambda: (t(3),))
def exception_matching(x):
    class Mine(KeyError):
        pass

    out = []
    for error in (Mine("a"), IndexError("b"), ZeroDivisionError()):
        try:
            raise error
        except (KeyError, IndexError) as e:
            out.append(type(e).__name__)
        except Exception as e:
            out.append(("other", type(e).__name__))
    return x + 1, out


@case(lambda: (t(3),))
def exception_reraised_and_chained(x):
    try:
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("outer") from error
    except ValueError as error:
        a = type(error.__cause__).__name__, error.args
    try:
        try:
            [][1]
        except IndexError:
            raise
    except IndexError as error:
        b = str(error)
    try:
        try:
            1 / 0
        except ZeroDivisionError:
            raise RuntimeError("in handler")
    except RuntimeError as error:
        c = type(error.__context__).__name__
    return x + 1, a, b, c


@case(lambda: (t(3),))
def exception_from_builtins_caught(x):
    out = []
    for f in (
        lambda: int("z"),
        lambda: 1 / 0,
        lambda: "a" + 1,
        lambda: [1][3],
        lambda: {}.x,
        lambda: None + 1,
        lambda: undefined_name,
        lambda: len(3),
        lambda: int(None),
    ):
        try:
            f()
        except Exception as error:
            out.append((type(error).__name__, str(error)))
    return x + 1, out


@case(lambda: (t(3),))
def finally_overrides(x):
    def g():
        for _ in range(2):
            try:
                return 1
            finally:
                return 2  # noqa: B012

    def h():
        for i in range(3):
            try:
                continue
            finally:
                seen.append(i)

    seen = []
    h()
    return x * g(), seen


@case(lambda: (t(3),))
def uncaught(x):
    y = x + 1
    raise ValueError("out", y.shape)


@case(lambda: (t(3), []))
def uncaught_after_effects(x, log):
    log.append(1)
    try:
        log.append(x + 1)
        raise KeyError("k")
    finally:
        log.append("finally")


@case(lambda: (t(3),))
def uncaught_from_tensor_op(x):
    return x + torch.ones(4)


@case(lambda: (t(3),))
def tensor_error_caught(x):
    try:
        return x.reshape(7)
    except RuntimeError as error:
        return x + 1, type(error).__name__


@case(lambda: (t(3),))
def exception_name_deleted(x):
    error = 1
    try:
        raise ValueError
    except ValueError as error:
        pass
    try:
        error
    except UnboundLocalError:
        return x + 1


@case(lambda: (t(3),))
def custom_exception(x):
    class Mine(Exception):
        def __init__(self, a, b):
            super().__init__(a)
            self.b = b

        def __str__(self):
            return f"mine {self.b}"

    try:
        raise Mine(1, x)
    except Mine as error:
        return error.b + 1, error.args, str(error)


@case(lambda: (t(3),))
def exception_groups(x):
    try:
        raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
    except* ValueError as group:
        a = len(group.exceptions)
    except* KeyError as group:
        b = group.exceptions[0].args
    return x + 1, a, b


@case(lambda: (t(3),))
def exception_returned(x):
    e = ValueError("kept", 1)
    return e, x + 1


class Mine(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b

    def __str__(self):
        return f"mine {self.b}"


class Other(KeyError):
    pass


@case(lambda: (t(3),))
def custom_exception_of_module(x):
    try:
        raise Mine(1, 5)
    except Mine as error:
        return x + error.b, error.args, str(error)


@case(lambda: (t(3),))
def exception_matching_of_module(x):
    out = []
    for error in (Other("a"), IndexError("b"), ZeroDivisionError()):
        try:
            raise error
        except (KeyError, IndexError) as e:
            out.append(type(e).__name__)
        except Exception as e:
            out.append(("other", type(e).__name__))
    return x + 1, out


# ---- strings ----


@case(lambda: (t(3), "name", 5))
def fstrings(x, s, n):
    return x + 1, f"{s}-{n:03d}-{n!r:>5}-{1.5:.3f}-{s.upper()}-{x.shape}-{n=}", "%s %d" % (s, n), "{} {a}".format(n, a=s), str(n), repr(s)


@case(lambda: (t(3), "Hello, World"))
def string_methods(x, s):
    return (
        x + 1, s.lower(), s.split(", "), s.replace("l", "L"), s.startswith("He"), s.find("W"), "-".join(["a", "b"]), s[::2], s * 2, "W" in s,
        s.encode(), len(s), s.partition(","), s.strip("H"), s == "x", s < "z", [c for c in s[:3]], s.isalpha(), s.zfill(20), ord(s[0]), chr(65), s.endswith(("x", "d")),
    )  # fmt: skip


@case(lambda: (t(3),))
def repr_of_containers(x):
    return x + 1, f"{[1, 'a', (2,), {'k': 1.5}]}", str({1}), str((1, 2)), repr({"a": [None]})


@case(lambda: (t(3), b"ab"))
def bytes_values(x, b):
    return x + b[0], b + b"c", b.hex(), b.decode()


# ---- imports, globals ----


@case(lambda: (t(3),))
def import_inside(x):
    import math
    import os.path as p
    from math import floor

    from torch.nn import functional as F

    return F.relu(x) * math.pi + floor(2.5), p.basename("/a/b")


@case(lambda: (t(3),))
def import_missing_caught(x):
    try:
        import a_module_that_is_not_there
    except ImportError as error:
        return x + 1, type(error).__name__, error.name


@case(lambda: (t(3),))
def global_reads(x):
    return x * SCALE + TABLE["k"] + WEIGHT


@scenario(captures=(1, 1))
def global_counter():
    def f(x):
        global COUNTER
        COUNTER += 1
        return x * COUNTER

    globals()["COUNTER"] = 0
    return Setup(f, lambda: (t(3),), watch=lambda: COUNTER)


@scenario()
def global_made_and_deleted():
    def f(x):
        global MADE
        MADE = x + 1
        y = MADE * 2
        del MADE
        return y

    return Setup(f, lambda: (t(3),), watch=lambda: "MADE" in globals())


@scenario()
def global_tensor_written():
    def f(x):
        global RESULT
        RESULT = x * 2
        return RESULT

    return Setup(f, lambda: (t(3),), watch=lambda: globals().get("RESULT"))


@scenario(after_change=(1, 1))
def global_changed():
    def f(x):
        return x * SCALE

    def put(v):
        globals()["SCALE"] = v

    return Setup(f, lambda: (t(3),), changes=[lambda: put(7), lambda: put(2.5)], cleanup=lambda: put(3))


@case(lambda: (t(3),))
def globals_function(x):
    return x * globals()["SCALE"], "SCALE" in globals()


@case(lambda: (t(3),))
def locals_function(x):
    a = 1
    return x + 1, sorted(locals())


@case(lambda: (t(3),))
def prints(x):
    print("hello", x.shape)
    return x + 1


@case(lambda: (t(3),))
def warns(x):
    import warnings

    warnings.warn("careful", UserWarning)
    return x + 1


@case(lambda: (t(3),))
def sys_attributes(x):
    return x + 1, sys.version_info >= (3, 8), sys.maxsize, sys.platform


@case(lambda: (t(3),))
def exec_free_type_hints(x):
    y: torch.Tensor = x + 1
    z: int
    return y


@case(lambda: (t(3),))
def chained_assignment_and_swap(x):
    a = b = [x]
    c, d = 1, 2
    c, d = d, c
    a[0], q = 5, a
    return a, b, c, d, q, x + 1


@case(lambda: (t(3),))
def del_local(x):
    y = x + 1
    z = y
    del y
    try:
        return y
    except UnboundLocalError as error:
        return z, str(error)


@case(lambda: (t(3),))
def type_annotations_class_level(x):
    class A:
        a: int = 3
        b: "str"

    return x * A.a


test_control = cases.as_test(__name__)
