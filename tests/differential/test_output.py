"""Output in the middle of a function: put off until after the graph, never seen to differ, else a break."""

import contextlib
import io
import logging
import sys
import warnings

import pytest
import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


# ---- print -------------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), ops=["add", "mul", "add"])
def constants_and_tensors(x):
    print("start")
    y = x + 1
    print(y, 1, 2.5, None, sep=" | ", end="!\n", flush=True)
    z = y * y
    print("two", (1, "a"), [1, {"k": {2}}], z.shape, z.dtype)
    print(z)
    return y, z + z


@case(lambda: (t(3), t(2, grad=True)))
def inputs_are_printed(x, y):
    print(x, y, torch.float32)
    return x + 1


@case(lambda: (t(3),))
def formatted(x):
    y = x + 1
    print(f"res: {y} {y.sum():.3f} {y!r} {x.shape[0]:>4}")
    print("%s and %s" % (y, 2), "%s" % (y.sum(),), "{} {n}".format(y, n=3), str(y), ", ".join([repr(y), "q"]))
    print([y, (y, 1)], {"k": y}, f"{[y]}")
    return y * 2


@case(lambda: (t(3),))
def text_of_a_tensor_is_returned(x):
    y = x * 2
    text = "a" + f"{y}" + "b"
    text += str(x)
    return f"<{y}>", str(y.sum()), y, text


@case(lambda: (t(3),), skip="Unsupported")
def text_of_a_tensor_is_compared(x):
    y = x * 2
    return y if f"{y}" == "tensor" else y + 1


@case(lambda: (t(3),), skip="Unsupported")
def text_of_a_tensor_has_a_length(x):
    y = x * 2
    return y + len(str(y))


@case(lambda: (t(3),), skip="Unsupported")
def text_of_a_tensor_is_taken_apart(x):
    try:
        y = x + 1
        return f"{y}"[0], [c for c in str(y)], f"{y}" * 2
    except TypeError:
        return "wrong"


@case(lambda: (t(3),), skip="HashOrCompare")
def text_of_a_tensor_as_a_key(x):
    return {f"{x + 1}": x}


@case(lambda: (t(3),), skip="Unsupported")
def text_of_a_tensor_is_searched(x):
    return x + ("tensor" in f"{x + 1}")


class Shown:
    def __init__(self, n):
        self.n = n

    def __str__(self):
        return f"Shown({self.n})"


class ShownTensor:
    def __init__(self, x):
        self.x = x

    def __repr__(self):
        return f"ShownTensor({self.x})"


@case(lambda: (t(3), Shown(3), [1]))
def objects_are_shown_as_they_were(x, shown, items):
    print(shown, items)
    shown.n += 1
    items.append(2)
    print(shown, items)
    return x + 1


@case(lambda: (t(3),))
def own_text_with_tensors(x):
    made = ShownTensor(x + 1)
    print(made, [made])
    return made.x * 2


@case(lambda: (t(3), object()), skip="Unsupported")
def address_in_the_text(x, thing):
    print(thing.__class__, end="")
    print(len(repr(thing)))
    return x + 1


@case(lambda: (t(3),), skip="UnsupportedMutation")
def printed_then_written(x):
    y = x + 1
    print(y)
    y.add_(1)
    return y


@case(lambda: (t(3),), skip="UnsupportedMutation")
def view_of_printed_is_written(x):
    y = x + 1
    print(y)
    y[0] = 5
    return y


@case(lambda: (t(3),), skip="UnsupportedMutation")
def base_of_printed_is_written(x):
    y = x + 1
    print(y.detach().view(3, 1))
    y.mul_(2)
    return y


@scenario(skip="UnsupportedMutation")
def inputs_that_share_memory():
    def f(x, y):
        print(x)
        y.add_(1)
        return x + y

    return Setup(f, lambda: (lambda x: (x, x.view(3, 1)))(t(3)))


@case(lambda: (t(2, 3), torch.nn.BatchNorm1d(3)), skip="UnsupportedMutation")
def running_statistics_are_printed(x, norm):
    print(norm.running_mean)
    return norm(x)


@case(lambda: (t(3),))
def written_then_printed(x):
    y = x + 1
    y.add_(1)
    print(y)
    z = y * 2
    z.add_(1)
    return z


@case(lambda: (t(3),))
def printed_in_a_loop_and_a_callee(x):
    def inner(v, i):
        print("step", i, v.sum())
        return v * 2

    for i in range(3):
        x = inner(x, i)
    return x


@case(lambda: (t(3),))
def printed_before_a_caught_exception(x):
    try:
        print("before")
        raise ValueError("no")
    except ValueError as e:
        print("caught", e)
    finally:
        print("finally")
    return x + 1


@case(lambda: (t(3),))
def printed_before_an_exception(x):
    y = x + 1
    print("before", y)
    raise ValueError("no")


@case(lambda: (t(3), Shown(0)), graphs=0)
def nothing_but_output(x, shown):
    print("nothing else", shown)


@case(lambda: (t(3),), skip="Output")
def replaced_stream(x):
    with contextlib.redirect_stdout(sys.stderr):
        print("hidden")
    return x + 1


class Loud:
    """A stream that can see what the program has done so far."""

    def __init__(self, look):
        self.look, self.seen = look, []

    def write(self, text):
        self.seen.append((text, self.look()))


@scenario(skip="Output")
def stream_that_looks():
    state = [0]
    loud = Loud(lambda: state[0])

    def f(x):
        state[0] += 1
        print("a", file=loud)
        state[0] += 1
        return x + len(loud.seen)

    return Setup(f, lambda: (t(3),), watch=lambda: (state, loud.seen))


@scenario()
def stream_given_by_name():
    out = io.StringIO()

    def f(x):
        y = x + 1
        print("to out", y, file=out)
        return y

    return Setup(f, lambda: (t(3),), watch=out.getvalue)


@case(lambda: (t(3),), skip="Output")
def bad_separator(x):
    print("a", sep=1)
    return x + 1


@case(lambda: (t(3),))
def own_print_is_a_call(x):
    def print(*args):
        return len(args)

    return x + print(1, 2)


# ---- logging -----------------------------------------------------------------------------------------------------------

FORMAT = "%(levelname)s %(name)s %(filename)s:%(lineno)d %(funcName)s %(message)s"


def make_logger(level=logging.INFO, handler=None):
    out = io.StringIO()
    logging.root.manager.loggerDict.pop("test_output", None)
    logger = logging.getLogger("test_output")
    logger.setLevel(level)
    logger.propagate = False
    handler = handler or logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter(FORMAT))
    logger.addHandler(handler)
    return logger, out


def logged(body, changes=lambda logger: (), handler=None):
    def build():
        logger, out = make_logger(handler=handler and handler())

        def f(x):
            return body(x, logger)

        return Setup(f, lambda: (t(3),), watch=lambda: (out.getvalue(), [getattr(h, "seen", 0) for h in logger.handlers]), changes=changes(logger))

    build.__name__ = body.__name__
    return build


def with_levels(x, log):
    y = x + 1
    log.debug("not seen %s", y)
    log.info("moo %s", y)
    log.warning("%d of %s, %r", 3, [1, 2], "text")
    log.error("e %(k)s", {"k": 1})
    log.critical(f"all {y}")
    log.log(logging.INFO, "log")
    return y * 2


scenario(after_change=(1, None, 1))(
    logged(
        with_levels,
        lambda log: (lambda: log.setLevel(logging.ERROR), lambda: log.setLevel(logging.INFO), lambda: setattr(log, "disabled", True)),
    )
)


def _helper(x, log):
    log.info("where am I")
    log.info("caller", stacklevel=2)
    return x * 2


def from_a_callee(x, log):
    y = _helper(x + 1, log)
    if log.isEnabledFor(logging.DEBUG):
        y = y * 3
    return y


scenario()(logged(from_a_callee))


def with_exception(x, log):
    y = x + 1
    try:
        raise ValueError("no")
    except ValueError as e:
        log.info(e)
        log.exception("failed")
    return y


scenario(skip="Output")(logged(with_exception))


def disabled_needs_nothing(x, log):
    log.debug("%s", object(), exc_info=True)
    return x + 1


scenario()(logged(disabled_needs_nothing))


class Looking(logging.Handler):
    def __init__(self):
        super().__init__()
        self.seen = []

    def emit(self, record):
        self.seen.append(record.getMessage())


def handler_of_the_user(x, log):
    log.info("one")
    return x + len(log.handlers[0].seen)


scenario(skip="Output")(logged(handler_of_the_user, handler=Looking))


# ---- warnings ----------------------------------------------------------------------------------------------------------


def _deprecated(x):
    warnings.warn("old", DeprecationWarning, stacklevel=2)
    return x * 2


@case(lambda: (t(3),))
def warned(x):
    warnings.warn("moo")
    y = _deprecated(x + 1)
    warnings.warn(UserWarning("made", 1))
    warnings.warn(f"tensor {y}", category=RuntimeWarning)
    return y


@case(lambda: (t(3), [1]))
def warned_between_writes_once(x, items):
    items.append(2)
    warnings.warn("moo")
    return x + 1


@case(lambda: (t(3), [1]), skip="UnsupportedMutation")
def warned_between_writes(x, items):
    items.append(2)
    warnings.warn("moo")
    items.append(3)
    return x + 1


@case(lambda: (t(3),), skip="UnsupportedMutation")
def warned_before_writing_an_input(x):
    warnings.warn("moo")
    x.add_(1)
    return x


@case(lambda: (t(3),), skip="Output")
def warned_inside_try(x):
    try:
        warnings.warn("moo")
    except UserWarning:
        x = x + 5
    return x + 1


@pytest.mark.parametrize("count", [255, 256, 3000])
@pytest.mark.parametrize("named", [{}, {"sep": "-", "end": "."}])
def test_calls_with_very_many_arguments(count, named):
    """As often as CPython needs to specialise the code: 3.11 has no calls with more than 255 arguments itself."""

    def f(x):
        print(*range(count), **named)
        return x + 1

    compiled = cdynamo.compile(f, backend="eager")
    expected = io.StringIO()
    print(*range(count), file=expected, **named)
    for _ in range(40):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            compiled(t(3))
        assert out.getvalue() == expected.getvalue()


@case(lambda: (t(3),), ops=["add", "mul"])
def warnings_switched_off_for_a_while(x):
    before = warnings.filters
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x + 1
        inside = warnings.filters[0][0], warnings.filters is before
    return y * 2, inside, warnings.filters is before


@case(lambda: (t(3),), graphs=2, skip="*")
def warnings_recorded_inside(x):
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        y = x + 1
        warnings.warn("first", stacklevel=1)
        y = y * 2
    return y - 1, [(str(w.message), w.category, w.lineno) for w in log]


@case(lambda: (t(3),), graphs=2, skip="*")
def warnings_that_are_errors_inside(x):
    y = x + 1
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", category=DeprecationWarning)
            warnings.warn("old", DeprecationWarning, stacklevel=1)
    except DeprecationWarning as error:
        return y * 2, str(error), [f[0] for f in warnings.filters]


test_output = cases.as_test(__name__)


@pytest.fixture(autouse=True)
def strict():
    cdynamo.reset()
    with cdynamo.config.patch(strict=True):
        yield
    cdynamo.reset()


def compiled(fn, **options):
    return cdynamo.compile(fn, backend="eager", fullgraph=True, **options)


def places(fn, *args):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fn(*args)
    return [(w.category, str(w.message), w.filename, w.lineno) for w in seen]


def test_warnings_name_the_users_line():
    assert places(warned, t(3)) == places(compiled(warned), t(3)) != []


def test_warnings_follow_the_filters_of_the_moment():
    def f(x):
        y = x + 1
        warnings.warn("first")
        items.append(len(items))
        return y

    items = []
    g = compiled(f)
    assert len(places(g, t(3))) == 1 and items == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="first"):
            g(t(3))
        assert items == [0]
        warnings.simplefilter("ignore")
        g(t(3))
    assert items == [0, 1]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        globals().pop("__warningregistry__", None)
        for _ in range(3):
            g(t(3))
    assert len(seen) == 1


def test_traceback_of_a_warning_that_is_an_error():
    def inner(x):
        warnings.warn("loud")
        return x

    def f(x):
        return inner(x + 1)

    def lines(fn):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning) as info:
                fn(t(3))
        return [(e.frame.code.raw.co_name, e.lineno) for e in info.traceback][1:]

    g = compiled(f)
    with contextlib.redirect_stderr(io.StringIO()):
        g(t(3))
    assert lines(f)[1:] == lines(g)[1:]


def test_setting():
    def f(x):
        print("moo")
        return x + 1

    from torch._dynamo.exc import Unsupported

    with cdynamo.config.patch(defer_output=False), contextlib.redirect_stdout(io.StringIO()), pytest.raises(Unsupported, match="defer_output"):
        compiled(f)(t(3))


def test_functions_listed_in_torchs_config():
    import torch._dynamo

    seen = []

    def custom(*args):
        torch._dynamo.graph_break()
        seen.append(args)

    logger = logging.getLogger("test_output.listed")

    def f(x):
        custom("moo", x)
        y = x + 1
        custom(f"{y}")
        logger.warning("dropped %s", object())
        return y

    with torch._dynamo.config.patch(reorderable_logging_functions={custom}, ignore_logging_functions={logger.warning}):
        out = compiled(f)(t(3))
    assert [str(a) for a in seen] == [str(("moo", t(3))), str((f"{out}",))]


def test_dynamo_config_drops_for_all_loggers():
    import torch._dynamo

    logger = logging.getLogger("test_output.all")
    with torch._dynamo.config.patch(ignore_logging_functions={logging.Logger.warning}):
        assert torch.equal(compiled(lambda x: (logger.warning("x"), x + 1)[1])(t(3)), t(3) + 1)


def test_a_backend_that_compiles_sees_the_printed_tensors(capfd):
    def f(x):
        y = x.sin()
        print(y.sum() > 0)
        return y.cos()

    out = cdynamo.compile(f, backend="aot_eager", fullgraph=True)(t(3))
    torch.testing.assert_close(out, t(3).sin().cos())
    assert capfd.readouterr().out == "tensor(True)\n"
