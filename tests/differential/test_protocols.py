"""Protocols: context managers, exceptions on the way out, odd classes, identity and equality, stars, nested generators."""

import contextlib

from differ import Cases, t

cases = Cases()
case = cases.case


@case(lambda: (t(3),))
def contextmanager_swallows(x):
    log = []

    @contextlib.contextmanager
    def quiet():
        try:
            yield 1
        except ValueError as error:
            log.append(str(error))
        finally:
            log.append("out")

    with quiet():
        raise ValueError("inside")
    return x + 1, log


@case(lambda: (t(3),))
def contextmanager_passes_on(x):
    log = []

    @contextlib.contextmanager
    def noting():
        try:
            yield
        except KeyError:
            log.append("seen")
            raise

    try:
        with noting():
            {}["k"]
    except KeyError as error:
        log.append(error.args)
    return x + 1, log


@case(lambda: (t(3),))
def contextmanager_as_decorator(x):
    log = []

    @contextlib.contextmanager
    def noting():
        log.append("in")
        yield
        log.append("out")

    @noting()
    def g(y):
        return y * 2

    return g(x), g(x), log


@case(lambda: (t(3),))
def exit_sees_traceback(x):
    seen = []

    class M:
        def __enter__(self):
            return self

        def __exit__(self, kind, value, tb):
            seen.append((kind is None, value is None, tb is None))
            return True

    with M():
        raise ValueError
    return x + 1, seen


class TracebackManager:
    def __init__(self):
        self.seen = []

    def __enter__(self):
        return self

    def __exit__(self, kind, value, tb):
        self.seen.append((kind is None, value is None, tb is None))
        return True


@case(lambda: (t(3),))
def exit_gets_a_traceback(x):
    m = TracebackManager()
    with m:
        raise ValueError
    with m:
        pass
    return x + 1, m.seen


@case(lambda: (t(3),))
def exception_has_a_traceback(x):
    try:
        raise ValueError
    except ValueError as error:
        return x + 1, error.__traceback__ is None


@case(lambda: (t(3),))
def nested_finally_order(x):
    log = []

    def g():
        try:
            try:
                log.append(1)
                return "value"
            finally:
                log.append(2)
        finally:
            log.append(3)

    def h():
        for i in range(3):
            try:
                if i == 1:
                    break
            finally:
                log.append(("loop", i))
        return "end"

    return g(), h(), log, x + 1


@case(lambda: (t(3),))
def exception_in_finally_replaces(x):
    try:
        try:
            raise KeyError("first")
        finally:
            raise ValueError("second")
    except ValueError as error:
        return x + 1, error.args, type(error.__context__).__name__


@case(lambda: (t(3),))
def suppressed_context(x):
    try:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("b") from None
    except ValueError as error:
        return x + 1, error.__cause__, error.__suppress_context__


@case(lambda: (t(3),))
def exception_notes_and_attributes(x):
    try:
        error = ValueError("a")
        error.code = 5
        raise error
    except ValueError as e:
        return x + 1, e.code, e is error


@case(lambda: (t(3),))
def property_raising_attribute_error(x):
    p = Tricky()
    said = hasattr(p, "bad"), getattr(p, "bad", 5)
    try:
        p.bad
    except AttributeError as error:
        return x + 1, said, str(error)


class Tricky:
    @property
    def bad(self):
        raise AttributeError("from the property")


class TrickyWithGetattr(Tricky):
    def __getattr__(self, name):
        return "fallback " + name


@case(lambda: (t(3),))
def property_error_falls_back_to_getattr(x):
    return x + 1, TrickyWithGetattr().bad


@case(lambda: (t(3),))
def getattribute_raises_then_getattr(x):
    class_ = Raising
    r = class_()
    return x + 1, r.anything


class Raising:
    def __getattribute__(self, name):
        raise AttributeError(name)

    def __getattr__(self, name):
        return "got " + name


class Deletable:
    def __init__(self):
        self._v = 1

    @property
    def v(self):
        return self._v

    @v.deleter
    def v(self):
        self._v = None


@case(lambda: (t(3), Deletable()))
def property_deleter(x, d):
    del d.v
    try:
        d.v = 3
    except AttributeError as error:
        return x + 1, d.v, str(error)


class Private:
    def __init__(self):
        self.__hidden = 3

    def get(self):
        return self.__hidden


@case(lambda: (t(3), Private()))
def name_mangling(x, p):
    return x * p.get(), p._Private__hidden, hasattr(p, "__hidden")


class Generic:
    def __class_getitem__(cls, item):
        return (cls.__name__, item)


@case(lambda: (t(3),))
def class_getitem(x):
    return x + 1, Generic[3], list[int] == list[int]


class Length:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


@case(lambda: (t(3),))
def bad_len_results(x):
    said = []
    for n in (-1, 2.5, "a"):
        try:
            len(Length(n))
        except Exception as error:
            said.append((type(error).__name__, str(error)))
    try:
        bool(BadBool())
    except TypeError as error:
        said.append(str(error))
    return x + 1, said, bool(Length(0)), bool(Length(2))


class BadBool:
    def __bool__(self):
        return 3


class BadIter:
    def __iter__(self):
        return 5


@case(lambda: (t(3),))
def bad_iterators(x):
    said = []
    for f in (lambda: list(BadIter()), lambda: iter(BadIter()), lambda: [*BadIter()]):
        try:
            f()
        except TypeError as error:
            said.append(str(error))
    return x + 1, said


class InitReturns:
    def __init__(self):
        return 5


@case(lambda: (t(3),))
def init_returning_a_value(x):
    try:
        InitReturns()
    except TypeError as error:
        return x + 1, str(error)


@case(lambda: (t(3),))
def object_takes_no_arguments(x):
    said = []
    for f in (lambda: Empty(1), lambda: Empty(a=1), lambda: object(1)):
        try:
            f()
        except TypeError as error:
            said.append(str(error))
    return x + 1, said


class Empty:
    pass


@case(lambda: (t(3),))
def eq_without_hash(x):
    said = []
    try:
        {OnlyEq(1): 2}
    except TypeError as error:
        said.append(str(error))
    return (
        x + 1,
        said,
        OnlyEq(1) == OnlyEq(1),
        OnlyEq(1) != OnlyEq(2),
        OnlyEq(1) in [OnlyEq(1)],
        [OnlyEq(1)].index(OnlyEq(1)),
        [OnlyEq(1)] == [OnlyEq(1)],
    )


class OnlyEq:
    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return self.v == other.v


@case(lambda: (t(3),))
def nan_in_containers(x):
    nan = float("nan")
    return x + 1, nan in [nan], [nan] == [nan], nan == nan, [nan].index(nan), (nan,) == (nan,), {nan: 1}.get(nan)


@case(lambda: (t(3), *(lambda nan: ([nan], nan, {"k": nan}))(float("nan")), [float("nan")]))
def nan_in_argument_containers(x, a, nan, d, other):
    return x + 1, a == [nan], a == other, nan in a, nan in other, d == {"k": nan}, (nan,) <= (nan,), a.index(nan)


@case(lambda: (t(3), slice(3), slice(1, 2)))
def slice_arguments_compared(x, s, r):
    return x + 1, s == slice(None, 3), slice(None, 3) != s, s == r, s == s, s == 3


@case(lambda: (t(3), float("nan")))
def nan_argument_in_containers(x, nan):
    return x + 1, nan in [nan], [nan] == [nan], (nan,) == (nan,), nan != nan


@case(lambda: (t(3), (1, 2)))
def identity_of_tuples(x, p):
    q = p
    return x + 1, q is p, p[:] is p, tuple(p) is p, (p + ()) == p


@case(lambda: (t(3), [1]))
def identity_of_lists(x, a):
    b = a
    b += [2]
    c = a
    c = c + [3]
    return a is b, c is a, a, c, x + 1


@case(lambda: (t(3), frozenset([1])))
def augmented_frozenset(x, s):
    before = s
    s |= {2}
    u = w = {1}
    u |= {5}
    return x + 1, before, s, u is w, w


@case(lambda: (t(3), "ab"))
def augmented_immutables(x, s):
    a = s
    s += "c"
    p = q = (1,)
    p += (2,)
    return x + 1, a, s, p, q


@case(lambda: (t(3), {"a": 1}))
def dict_or_pairs(x, d):
    e = d
    e |= [("b", 2)]
    return x + 1, d, e is d


@case(lambda: (t(3),))
def class_body_variables(x):
    return [i * Scope.k for i in range(2)], Scope.items, x + Scope().method()


class Scope:
    k = 3
    items = [k for _ in range(2)] if False else [3, 3]

    def method(self):
        return sum(self.k for _ in range(2))


@case(lambda: (t(3),))
def star_args_from_generator(x):
    def g(*a, **k):
        return len(a), sorted(k)

    return g(*(i for i in range(3)), *[1], **{"a": 1}, **{"b": 2}), x + 1


@case(lambda: (t(3),))
def bad_star_arguments(x):
    def g(*a, **k):
        return a, k

    said = []
    for f in (lambda: g(*5), lambda: g(**5), lambda: g(**{1: 2})):
        try:
            f()
        except TypeError as error:
            said.append(str(error).rpartition("() ")[2] or str(error))
    return x + 1, said


@case(lambda: (t(3),))
def nested_generators_and_closures(x):
    def outer():
        total = 0

        def inner(n):
            nonlocal total
            for i in range(n):
                total += i
                yield total

        yield from inner(3)
        yield from inner(2)

    return list(outer()), x + 1


@case(lambda: (t(3),))
def generator_return_is_value_of_yield_from(x):
    def inner():
        got = yield 1
        return got

    def outer():
        value = yield from inner()
        yield ("value", value)

    g = outer()
    return next(g), g.send("sent"), x + 1


test_protocols = cases.as_test(__name__)
