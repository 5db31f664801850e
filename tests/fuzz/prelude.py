"""What every random program begins with: classes with special methods, context managers, generators and functions to call."""

PRELUDE = """\
import collections, contextlib, functools, itertools, math, warnings
import torch
import cdynamo

G = 1
GLIST = [1, 2]
GDICT = {"g": 1}

class Oops(Exception):
    def __init__(self, *args, code=0):
        super().__init__(*args)
        self.code = code

class Box:
    kind = "box"
    def __init__(self, value, items=()):
        self.value = value
        self.items = list(items)
    def __add__(self, other):
        if isinstance(other, Box):
            return Box(self.value + other.value, self.items + other.items)
        if isinstance(other, (int, float)):
            return Box(self.value + other, self.items)
        return NotImplemented
    def __radd__(self, other):
        return Box(other + self.value, self.items)
    def __iadd__(self, other):
        self.value += other
        return self
    def __eq__(self, other):
        return isinstance(other, Box) and self.value == other.value
    def __hash__(self):
        return hash(self.value)
    def __lt__(self, other):
        return self.value < other.value
    def __len__(self):
        return len(self.items)
    def __bool__(self):
        return self.value != 0
    def __getitem__(self, i):
        return self.items[i]
    def __setitem__(self, i, v):
        self.items[i] = v
    def __delitem__(self, i):
        del self.items[i]
    def __iter__(self):
        for item in self.items:
            yield item
    def __contains__(self, v):
        return v in self.items or v == self.value
    def __call__(self, x, scale=2):
        return x * scale + self.value
    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return len(name) + self.value
        raise AttributeError(name)
    def __format__(self, spec):
        return f"<{self.value:{spec}}>"
    def __repr__(self):
        return f"Box({self.value!r})"
    def __index__(self):
        return int(self.value) % 3
    @property
    def twice(self):
        return self.value * 2
    @twice.setter
    def twice(self, v):
        self.value = v // 2
    @classmethod
    def make(cls, v):
        return cls(v, [v])
    @staticmethod
    def clamp(v):
        return max(-5, min(5, v))

class Crate(Box):
    __slots__ = ("tag",)
    kind = "crate"
    def __init__(self, value, items=(), tag="t"):
        super().__init__(value, items)
        self.tag = tag
    def __call__(self, x, scale=3):
        return super().__call__(x, scale) - 1
    def __enter__(self):
        self.value += 1
        return self
    def __exit__(self, kind, error, traceback):
        self.value -= 1
        self.items.append(0 if kind is None else 1)
        return kind is not None and issubclass(kind, LookupError)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))
        self.count = 0
        self.names = ["a"]
        with torch.no_grad():
            self.linear.weight.fill_(0.5)
            self.linear.bias.fill_(0.25)
    def forward(self, x, times=1):
        self.count += 1
        if self.training:
            self.seen += self.count
        for _ in range(times):
            x = self.linear(x) if x.shape[-1:] == (3,) and x.dtype == torch.float32 else x + self.count
        return x

NET = Net()

@contextlib.contextmanager
def managed(log, swallow=False):
    log.append("in")
    try:
        yield len(log)
    except ValueError:
        log.append("error")
        if not swallow:
            raise
    finally:
        log.append("out")

def counted(n, step=1):
    i = 0
    while i < n:
        got = yield i
        if got is not None:
            i += got
        i += step
    return "end"

def delegating(n):
    result = yield from counted(n)
    try:
        yield 10
    finally:
        GLIST.append(result)

def varied(a, /, b=2, *rest, c=3, **more):
    return a + b + sum(rest) + c + sum(more.values())

def failing(n):
    if n % 3 == 0:
        raise ValueError("multiple of three", n)
    if n % 3 == 1:
        raise Oops("one over", code=n)
    return n

@cdynamo.disable
def opaque(value):
    return value
"""
