"""Compares what the shapes room infers with what eager returns on real tensors."""

import importlib
import os
import sys

import torch


def load_engine():
    """The extension: the installed cdynamo._C, or a development build named by CDYNAMO_SHAPES_DIR."""
    folder = os.environ.get("CDYNAMO_SHAPES_DIR")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if root not in sys.path:
        sys.path.insert(0, root)
    if folder:
        sys.path.insert(0, folder)
        return importlib.import_module("_shapes")
    return importlib.import_module("cdynamo._C")


engine = load_engine()


def facts(t):
    return {
        "dtype": t.dtype,
        "device": t.device,
        "sizes": tuple(t.shape),
        "strides": tuple(t.stride()),
        "requires_grad": t.requires_grad,
        "is_leaf": t.is_leaf,
        "is_inference": t.is_inference(),
        "is_conj": t.is_conj(),
        "is_neg": t.is_neg(),
        "offset": t.storage_offset(),
    }


def normal(value):
    """A description or an eager result as comparable plain data."""
    if isinstance(value, torch.Tensor):
        return facts(value)
    if isinstance(value, dict):
        return {**value, "sizes": tuple(value["sizes"]), "strides": tuple(value["strides"])}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], type):
        return (value[0], tuple(normal(v) for v in value[1]))
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, tuple) and type(value) is not tuple:
        return (type(value), tuple(normal(v) for v in value))
    if isinstance(value, (tuple, list)):
        return type(value)(normal(v) for v in value)
    return value


def copied(value, memo):
    """Equal tensors with the same metadata, so that in-place ops do not disturb the caller's."""
    if isinstance(value, torch.Tensor):
        if id(value) not in memo:
            if value.device.type == "meta":
                memo[id(value)] = value
                return value
            extent = 1 + sum((s - 1) * st for s, st in zip(value.shape, value.stride())) if value.numel() else 0
            with torch.no_grad():
                flat = torch.as_strided(value.detach(), (extent,), (1,), value.storage_offset())
                base = torch.empty(value.storage_offset() + extent, dtype=value.dtype, device=value.device)
                base[value.storage_offset() :] = flat
                new = base.as_strided(value.shape, value.stride(), value.storage_offset()).detach()
            if value.requires_grad:
                if value.is_leaf:
                    new.requires_grad_()
                else:
                    with torch.enable_grad():
                        new.add_(torch.zeros((), dtype=new.dtype, requires_grad=True))
            memo[id(value)] = new
        return memo[id(value)]
    if type(value) in (tuple, list):
        return type(value)(copied(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: copied(v, memo) for k, v in value.items()}
    return value


def call(target, args, kwargs):
    return getattr(args[0], target)(*args[1:], **kwargs) if isinstance(target, str) else target(*args, **kwargs)


class Tally:
    """Counts how calls were answered, and what was wrong."""

    def __init__(self):
        self.paths = {"rule": 0, "memo": 0, "fake": 0, "error": 0, "unknown": 0}
        self.wrong = []
        self.not_rule = []
        self.fake_differs = []  # FakeTensor and eager disagree: not ours to mend, but good to know

    def check(self, target, *args, **kwargs):
        label = f"{getattr(target, '__name__', target)}({', '.join(map(brief, args))}, {kwargs})"
        memo = {}
        try:
            eager = normal(call(target, copied(args, memo), copied(kwargs, memo)))
            raised = None
        except Exception as error:
            eager, raised = None, error
        try:
            path, got = engine.infer_result(target, args, kwargs)
        except NotImplementedError as error:
            self.paths["unknown"] += 1
            if raised is None:
                self.not_rule.append((label, f"unknown: {error}"))
            return
        except Exception as error:
            self.paths["error"] += 1
            if raised is None:
                self.not_rule.append((label, f"FakeTensor raised {type(error).__name__}: {error}"))
            return
        if raised is not None:
            if path == "rule" and "ZeroDivisionError" not in str(raised):
                self.wrong.append((label, got, f"eager raised {type(raised).__name__}: {str(raised)[:200]}"))
            return
        self.paths[path] += 1
        if path != "rule":
            self.not_rule.append((label, path))
            if normal(got) != eager:
                self.fake_differs.append((label, difference(normal(got), eager)))
            return
        if normal(got) != eager:
            self.wrong.append((label, difference(normal(got), eager), ""))

    def report(self, limit=15):
        return f"{len(self.wrong)} wrong\n" + "\n".join(str(w) for w in self.wrong[:limit])


def difference(got, want):
    if isinstance(got, dict) and isinstance(want, dict):
        return {k: (got.get(k), want[k]) for k in want if got.get(k) != want[k]}
    return (got, want)


def brief(value):
    if isinstance(value, torch.Tensor):
        grad = " grad" if value.requires_grad else ""
        return f"{str(value.dtype)[6:]}{list(value.shape)}/{list(value.stride())}{grad}"
    return repr(value)


def layouts(shape, dtype=torch.float32, requires_grad=False):
    """Tensors of one shape in many layouts: contiguous, permuted, strided, expanded, channels last, with an offset."""

    def make(s):
        if dtype.is_floating_point:
            t = torch.rand(s, dtype=torch.float32).to(dtype)
        elif dtype is torch.bool:
            t = torch.rand(s) > 0.5
        else:
            t = torch.randint(1, 5, s, dtype=dtype)
        return t

    found = [make(shape)]
    rank = len(shape)
    if rank >= 2:
        found.append(make(shape[::-1]).permute(*reversed(range(rank))))
        found.append(make((*shape[:-1], shape[-1] * 2))[..., ::2])
        found.append(make((shape[0] + 2, *shape[1:]))[1:-1])
        found.append(make((shape[1], shape[0], *shape[2:])).transpose(0, 1))
        found.append(make((1, *shape[1:])).expand(shape))
        found.append(make((*shape[:-1], 1)).expand(shape))
    if rank == 1:
        found.append(make((shape[0] * 2,))[::2])
        found.append(make((1,)).expand(shape))
    if rank == 4:
        found.append(make(shape).to(memory_format=torch.channels_last))
    if rank == 5:
        found.append(make(shape).to(memory_format=torch.channels_last_3d))
    if requires_grad and dtype.is_floating_point:
        found = [t.detach().requires_grad_() for t in found]
    return found
