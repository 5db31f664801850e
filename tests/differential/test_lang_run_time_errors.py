"""Graphs that fail while they run, on data that shapes do not tell: handlers, effects, output and inputs are eager's."""

import contextlib

import pytest
import torch
from differ import Cases, Setup, t

import cdynamo

cases = Cases()
case, scenario = cases.case, cases.scenario


def indices(*values):
    return torch.tensor(values)


@case(lambda: (t(4), indices(1, 9)))
def uncaught_index(x, i):
    return x[i] + 1


@case(lambda: (t(4), indices(1, 9)))
def handler_is_reached(x, i):
    try:
        y = x[i] * 2
    except IndexError as error:
        return x + 1, error.args
    return y, None


@case(lambda: (t(4), indices(1, 9)), graphs=2, captures=(2, 0))  # the failed call is CPython's, and its callees are captured
def handler_two_frames_up(x, i):
    def low():
        return torch.gather(x, 0, i)

    def mid():
        y = x * 2
        return low() + y[0]

    try:
        return mid()
    except RuntimeError as error:
        return x - 1, type(error).__name__


@case(lambda: (t(4), indices(1, 9), []))
def effects_before_the_error(x, i, log):
    log.append("before")
    y = x + 1
    log.append(y)
    z = x[i]
    log.append("never")
    return z


@case(lambda: (t(4), indices(1, 9)))
def output_before_the_error(x, i):
    print("first")
    y = x + 1
    print("second", y.shape)
    z = x[i]
    print("never", z)
    return z


@case(lambda: (t(4), indices(1, 9), []))
def finally_runs(x, i, log):
    try:
        y = x[i]
    finally:
        log.append("finally")
    return y


@case(lambda: (t(4), indices(1, 9), []))
def manager_is_left(x, i, log):
    @contextlib.contextmanager
    def noting():
        log.append("enter")
        try:
            yield
        except IndexError:
            log.append("error")
            raise
        finally:
            log.append("exit")

    with noting():
        y = x[i]
    return y


@case(lambda: (t(4), indices(1, 9)))
def grad_mode_is_left_right(x, i):
    with torch.no_grad():
        y = x[i]
    return y


@case(lambda: (t(4), indices(1, 9)), captures=(1, 1))
def grad_mode_set_before_the_error(x, i):
    torch.set_grad_enabled(False)
    return x[i]


@case(lambda: (t(4), indices(1, 9), []))
def input_written_before_the_error(x, i, log):
    log.append(1)
    x.add_(1)
    y = x[i]
    log.append(2)
    return y


@case(lambda: (t(4), indices(1, 9), []))
def input_written_and_handled(x, i, log):
    x.mul_(2)
    try:
        return x[i]
    except IndexError:
        log.append(x.sum())
        return x + 1


@case(lambda: (t(4), indices(1, 9)))
def input_written_uncaught(x, i):
    x.mul_(2)
    return x[i]


@case(lambda: (t(4), indices(1, 9), []))
def random_numbers_before_the_error(x, i, log):
    log.append("start")
    y = torch.rand(3) + x[:3]
    try:
        return y[i]
    except IndexError:
        return y + torch.rand(3)


@case(lambda: (t(4, 4),))
def cholesky_fails(x):
    try:
        return torch.linalg.cholesky(x - 10)
    except torch.linalg.LinAlgError as error:
        return x + 1, type(error).__name__


@case(lambda: (t(3, 5), indices(1, 2, 7)))
def bad_label(logits, labels):
    try:
        return torch.nn.functional.cross_entropy(logits, labels)
    except IndexError as error:
        return logits.sum(), error.args


@case(lambda: (t(4), t(4, seed=1)))
def kernel_not_implemented(x, y):
    try:
        return x & y
    except NotImplementedError as error:
        return x + y, error.args


@case(lambda: (indices(4, 6), indices(2, 0)))
def integer_division_by_zero(a, b):
    try:
        return a // b
    except (ZeroDivisionError, RuntimeError) as error:
        return a + b, type(error).__name__, error.args


@case(lambda: ([t(4), t(4), t(4)], [0, 5, 1]))
def error_in_a_loop(items, where):
    out = []
    for x, i in zip(items, where, strict=True):
        try:
            out.append(x[torch.tensor([i])] * 2)
        except IndexError:
            out.append(None)
    return out


@case(lambda: (t(4), indices(1, 9)), skip="*")
def error_after_a_break(x, i):
    log = []
    y = x * 2
    torch._dynamo.graph_break()
    log.append("after")
    try:
        z = y[i]
    except IndexError:
        log.append("caught")
        z = y
    return z + 1, log


@case(lambda: (t(4), indices(1, 9)), skip="*")
def error_before_a_break(x, i):
    log = ["start"]
    try:
        y = x[i]
        torch._dynamo.graph_break()
        log.append("never")
    except IndexError:
        log.append("caught")
        y = x
    return y + 1, log


@scenario(after_change=(0, 0))
def fails_only_sometimes():
    at = [1]

    def f(x, i):
        try:
            return x[i] + 1
        except IndexError:
            return x - 1

    return Setup(f, lambda: (t(4), torch.tensor(at)), changes=(lambda: at.__setitem__(0, 7), lambda: at.__setitem__(0, 2)))


@scenario(after_change=(0, 0))
def counts_only_sometimes():
    at = [1]
    seen = []

    def f(x, i):
        seen.append("called")
        y = x[i] + 1
        seen.append("done")
        return y

    return Setup(f, lambda: (t(4), torch.tensor(at)), lambda: seen, changes=(lambda: at.__setitem__(0, 7), lambda: at.__setitem__(0, 2)))


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.embedding = torch.nn.Embedding(4, 3)
        self.calls = 0

    def forward(self, i):
        self.calls += 1
        y = self.norm(self.embedding(i))
        return self.embedding(i + 3) + y


@scenario(captures=(1, 1))
def module_with_running_statistics():
    torch.manual_seed(0)
    module = Counting()
    return Setup(module.forward, lambda: (indices(0, 1),), lambda: (module.calls, module.norm.running_mean, module.norm.num_batches_tracked))


@pytest.mark.parametrize("size, undone", [(100, True), (1 << 20, False)])
def test_only_small_inputs_are_copied_for_it(size, undone):
    """A cache of gigabytes is not copied in each call for an error that may come: then it surfaces as the graph left things."""

    def f(cache, i, log):
        log.append("called")
        cache.add_(1)
        return cache[i]

    cache, log = torch.zeros(size), []
    with pytest.raises(IndexError, match="out of bounds"):
        cdynamo.compile(f, backend="eager")(cache, torch.tensor([size + 5]), log)
    assert (log == ["called"]) == undone and cache[0] == 1


test_lang_run_time_errors = cases.as_test(__name__)
