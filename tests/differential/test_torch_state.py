"""State of torch that a function changes: grad mode, settings, contexts of profilers; what is left behind after breaks and errors."""

import warnings

import torch
import torch.fx.experimental._config
from differ import Cases, Setup, t
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu
from torch.nn.attention import SDPBackend, sdpa_kernel

with warnings.catch_warnings(), torch.profiler.profile():
    warnings.simplefilter("ignore")  # before 2.13 the first one in a process warns

cases = Cases()
case, scenario = cases.case, cases.scenario

disabled_message = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message


# ---- grad mode ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3, grad=True),), ops=["add", "_set_grad_enabled", "mul", "mul", "mul", "_set_grad_enabled", "sub"])
def inner_modes_that_change_nothing(x):
    y = x + 1
    with torch.no_grad():
        a = y * 2
        with torch.no_grad():
            b = y * 3
        c = y * 4
        torch.set_grad_enabled(False)
        torch.autograd.grad_mode.no_grad().__enter__()
    return a, b, c, y - 1


@case(lambda: (t(3, grad=True),), graphs=2, skip="*", captures=(2, 0))
def break_under_a_mode_that_changes_nothing(x):
    with torch.enable_grad():
        y = x + 1
        torch._dynamo.graph_break()
        y = y * 2
    return y - 1


@case(lambda: (torch.nn.Parameter(t(3)), t(3)), ops=["_set_grad_enabled", "add_", "_set_grad_enabled"])
def modes_that_are_changed_again(x, y):
    torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    torch.set_grad_enabled(False)
    x.add_(y)
    torch.set_grad_enabled(True)


# ---- profilers ---------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), ops=["add", "mul", "sub"])
def labels(x):
    with torch.profiler.record_function("outer"):
        y = x + 1
        with torch.autograd.profiler.record_function("inner", "1") as label:
            z = y * 2
    return z - 1, label.name, label.args


@torch.profiler.record_function("decorated")
def labelled(x):
    return x * 2


@case(lambda: (t(3),), ops=["add", "mul"])
def labels_by_decorator(x):
    return labelled(x + 1)


@case(lambda: (t(3),), graphs=2, skip="*", captures=(3, 0))
def break_under_a_label(x):
    with torch.profiler.record_function("outer") as label:
        y = x + 1
        torch._dynamo.graph_break()
        y = y * 2
    return y, label.record is not None


@case(lambda: (t(3),), ops=["add", "mul"])
def error_under_a_label(x):
    y = x + 1
    try:
        with torch.profiler.record_function("outer"):
            raise ValueError("no")
    except ValueError as e:
        return y * 2, str(e)


@case(lambda: (t(3),), ops=["add", "mul"])
def profile_that_nobody_reads(x):
    with torch.profiler.profile():
        y = x + 1
    with torch.autograd.profiler.profile():
        return y * 2


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def break_under_a_profile(x):
    with torch.profiler.profile():
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2


@case(lambda: (t(3),), graphs=3, skip="UnsupportedContextManager", captures=(4, 0))
def profile_that_is_read(x):
    y = x * 2
    with torch.autograd.profiler.profile() as profile:
        y = y + 1
    return y - 1, len(profile.key_averages()) > 0


@case(lambda: (t(3),), graphs=0)
def profile_with_a_wrong_argument(x):
    with torch.profiler.profile(nonsense=1):
        return x + 1


# ---- settings ----------------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), ops=["_saved_tensors_hooks_disable", "add", "_saved_tensors_hooks_enable"])
def hooks_disabled(x):
    with disable_saved_tensors_hooks("not here"):
        return x + 1, disabled_message()


@scenario(captures=(1, 0), after_change=(1,))
def hooks_disabled_before():
    outer = disable_saved_tensors_hooks("before")

    def fn(x):
        @disable_saved_tensors_hooks("not here")
        def inner(x):
            return x + 1, disabled_message()

        return inner(x), disabled_message()

    return Setup(fn, lambda: (t(3),), disabled_message, [outer.__enter__], cleanup=lambda: disabled_message() and outer.__exit__(None, None, None))


@scenario(graphs=2, skip="*", captures=(2, 0))
def hooks_disabled_over_a_break():
    def fn(x):
        with disable_saved_tensors_hooks("not here"):
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2, disabled_message()
        return y, disabled_message()

    return Setup(fn, lambda: (t(3),), disabled_message)


@scenario()
def hooks_left_disabled():
    def fn(x):
        torch._C._autograd._saved_tensors_hooks_disable("left")
        return x + 1

    def undo():
        torch._C._autograd._saved_tensors_hooks_enable()

    return Setup(fn, lambda: (undo(), t(3))[1:], disabled_message, cleanup=undo)


@case(lambda: (t(3, grad=True),), graphs=0, skip="*", captures=(0, 0))
def hooks_refused(x):
    with disable_saved_tensors_hooks("not here"):
        with save_on_cpu():
            return x * x


@scenario(graphs=2, skip="*", captures=(2, 0))
def setting_of_an_attempt_that_was_given_up():
    def callee(x):
        with disable_saved_tensors_hooks("not here"):
            y = x + 1
            for _ in iter([1]):
                torch._dynamo.skip_frame()
            return y

    def fn(x):
        y = x * 2
        return callee(y) * 3, disabled_message()

    return Setup(fn, lambda: (t(3),), disabled_message)


@scenario()
def deterministic_algorithms():
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()

    def state():
        return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()

    def undo():
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])

    def fn(x):
        torch.use_deterministic_algorithms(True, warn_only=True)
        return x + 1, torch.are_deterministic_algorithms_enabled()

    undo()  # inductor's own setting exists from now on
    return Setup(fn, lambda: (undo(), t(3))[1:], state, cleanup=undo)


def attention_kernels():
    return torch.nn.attention._cur_sdpa_kernel_backends(True)


@scenario(captures=(1, 0), after_change=(1,))
def attention_kernels_are_read():
    def fn(x):
        return x + torch.backends.cuda.math_sdp_enabled()

    return Setup(
        fn, lambda: (t(3),), changes=[lambda: torch.backends.cuda.enable_math_sdp(False)], cleanup=lambda: torch.backends.cuda.enable_math_sdp(True)
    )


@scenario()
def attention_kernels_are_chosen():
    def fn(q):
        with sdpa_kernel(SDPBackend.MATH):
            a = torch.nn.functional.scaled_dot_product_attention(q, q, q), torch.backends.cuda.flash_sdp_enabled()
        return a, torch.backends.cuda.flash_sdp_enabled()

    return Setup(fn, lambda: (t(1, 1, 2, 4),), attention_kernels)


@scenario(graphs=2, skip="*", captures=(2, 0))
def attention_kernels_over_a_break():
    def fn(q):
        with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
            q = q + 1
            torch._dynamo.graph_break()
            a = torch.nn.functional.scaled_dot_product_attention(q, q, q), torch.backends.cuda.mem_efficient_sdp_enabled()
        return a, torch.backends.cuda.mem_efficient_sdp_enabled()

    return Setup(fn, lambda: (t(1, 1, 2, 4),), attention_kernels)


@scenario(captures=(1, 0), after_change=(1,))
def config_modules_are_read():
    before = torch.fx.experimental._config.translation_validation

    def fn(x):
        return x + (2 if torch.fx.experimental._config.translation_validation else 1)

    def put(value):
        torch.fx.experimental._config.translation_validation = value

    return Setup(fn, lambda: (t(3),), changes=[lambda: put(not before)], cleanup=lambda: put(before))


@scenario()
def config_modules_are_written():
    config = torch.fx.experimental._config
    before = config.translation_validation_timeout

    def undo():
        config.translation_validation_timeout = before

    def fn(x):
        config.translation_validation_timeout = 17
        return x + config.translation_validation_timeout

    def state():
        return config.translation_validation_timeout, "translation_validation_timeout" in vars(config)

    return Setup(fn, lambda: (undo(), t(3))[1:], state, cleanup=undo)


# ---- operations that fail ------------------------------------------------------------------------------------------------


def failing(enter):
    """The second call's index is out of range, which only the running graph finds out."""

    def build():
        at = [1]

        def fn(x, i):
            with enter():
                y = x[i]
            with enter():
                return y + 1

        def state():
            return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), disabled_message(), torch.is_inference_mode_enabled()

        return Setup(fn, lambda: (t(3), torch.tensor(at)), state, [lambda: at.__setitem__(0, 7)])

    return build


for name, manager in {
    "no_grad": torch.no_grad,
    "autocast": lambda: torch.autocast("cpu"),
    "hooks": lambda: disable_saved_tensors_hooks("not here"),
    "inference": torch.inference_mode,
}.items():
    build = failing(manager)
    build.__name__ = f"failure_under_{name}"
    # The failed call is made by CPython, where the lambda that makes an autocast is captured.
    scenario(after_change=(int(name == "autocast"),))(build)


# ---- contexts of an attempt that was given up --------------------------------------------------------------------------


@case(lambda: (t(3, 3),), graphs=2, skip="*", captures=(2, 0))
def autocast_of_an_attempt_that_was_given_up(x):
    def callee(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            torch._dynamo.skip_frame()
            return y

    y = x * 2
    return callee(y) + 1, y @ y, torch.is_autocast_enabled("cpu")


@case(lambda: (t(3),), graphs=2, skip="*", captures=(2, 0))
def default_dtype_for_a_while(x):
    # Not in a graph: what AOTAutograd makes of `ones(3)` or `n / 2` asks for the default when it runs.
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        y = torch.ones(3)
        kind = torch.get_default_dtype()
    finally:
        torch.set_default_dtype(before)
    return x + y, kind, torch.tensor(1.5).dtype


# ---- devices and modes -------------------------------------------------------------------------------------------------


@case(lambda: (t(3),), ops=["ones", "zeros", "ones", "add"])
def device_for_a_while(x):
    with torch.device("meta") as device:
        a = torch.ones(3)
        with torch.device("cpu"):
            b = torch.zeros(2)
    return a.device, b, device, torch.ones(3) + x


@case(lambda: (t(3),), graphs=3, skip="*", captures=(3, 0))
def device_across_a_break(x):
    try:
        with torch.device("meta"):
            a = torch.ones(3)
            torch._dynamo.graph_break()
            b = torch.zeros(2)
            raise KeyError(b.device)
    except KeyError as error:
        c = error.args[0]
    return a.device, c, torch.ones(3) + x, torch._C._len_torch_function_stack()


class Counting(torch.overrides.TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __enter__(self):
        self.seen.append("enter")
        return super().__enter__()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function.__name__)
        return function(*args, **(kwargs or {}))


@case(lambda: (t(3),), graphs=2, skip="*", captures=(3, 0))
def mode_with_its_own_enter(x):
    with Counting() as mode:
        y = torch.sin(x)
        torch._dynamo.graph_break()
        y = torch.cos(y)
    return y, mode.seen


test_torch_state = cases.as_test(__name__)
