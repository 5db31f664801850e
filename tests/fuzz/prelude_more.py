"""What random programs have beside the prelude: classes that inherit from each other, dataclasses, managers that swallow, functions that forward."""

MORE = '''
import copy, dataclasses, enum, operator, types, typing

@dataclasses.dataclass
class Point:
    a: int
    b: float = 0.5
    items: list = dataclasses.field(default_factory=list)
    def __post_init__(self):
        self.items.append(self.a)
    def moved(self, by):
        return dataclasses.replace(self, a=self.a + by, items=self.items[:2])

@dataclasses.dataclass(frozen=True, order=True)
class Pair:
    a: int
    b: int = 0
    @property
    def both(self):
        return self.a + self.b

class Color(enum.Enum):
    RED = 1
    BLUE = 2

Named = collections.namedtuple("Named", "a b", defaults=(3,))

class Shape:
    made = 0
    def __init__(self, n, **more):
        super().__init__()
        type(self).made += 1
        self.n, self.log = n, []
        for key, value in more.items():
            setattr(self, key, value)
    def area(self, x):
        self.log.append("shape")
        return x * self.n
    @property
    def size(self):
        return self.n
    @size.setter
    def size(self, v):
        self.log.append(v)
        self.n = v
    @classmethod
    def unit(cls):
        return cls(1)

class Round(Shape):
    def area(self, x):
        self.log.append("round")
        return super().area(x) + 1
    @property
    def size(self):
        return super().size * 2
    @size.setter
    def size(self, v):
        super(Round, type(self)).size.fset(self, v + 1)
    @functools.cached_property
    def once(self):
        GLIST.append("once")
        return self.n + 5

class Loud(Shape):
    def __init__(self, n, volume=1, **more):
        super().__init__(n, **more)
        self.volume = volume
    def area(self, x):
        self.log.append("loud")
        return super().area(x) * self.volume
    def __getattribute__(self, name):
        if name == "hidden":
            return 3
        return super().__getattribute__(name)

class Both(Round, Loud):
    def area(self, x):
        out = super().area(x)
        self.log.append("both")
        return out

class Swallow:
    """Swallows some errors, and notes all."""
    def __init__(self, *kinds):
        self.kinds, self.seen = kinds, []
    def __enter__(self):
        return self
    def __exit__(self, kind, error, traceback):
        self.seen.append(None if kind is None else (kind.__name__, str(error)[:60]))
        return kind is not None and issubclass(kind, self.kinds)

class Adds(contextlib.ContextDecorator):
    """Writes to a tensor on the way in and out; may fail on the way out."""
    def __init__(self, tensor, fail=False):
        self.tensor, self.fail = tensor, fail
    def __enter__(self):
        self.tensor.add_(1)
        return self.tensor
    def __exit__(self, *error):
        self.tensor.mul_(2)
        if self.fail:
            raise KeyError("exit")
        return False

def forward_all(fn, *args, **kwargs):
    return fn(*args, **kwargs)

def noted(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        GLIST.append((fn.__name__, len(args), sorted(kwargs)))
        return fn(*args, **kwargs)
    return inner

def bump(by=1):
    global G
    G += by
    return G

def kept(v, into=[]):
    into.append(v)
    return len(into)

def running(total=0):
    """A generator that answers with a running total, and notes what is thrown into it."""
    while True:
        try:
            got = yield total
            total += 1 if got is None else got
        except ValueError as error:
            GLIST.append(str(error))
            total = 0

def through(source):
    try:
        result = yield from source
        GLIST.append(result)
    except KeyError as error:
        yield -1
    finally:
        GLIST.append("through")

@torch.no_grad()
def frozen(x):
    return x * 2

class Deep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(2)])
        self.gain = torch.nn.Parameter(torch.full((3,), 0.5))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("steps", torch.tensor(0))
        self.table = {"last": None}
        with torch.no_grad():
            for p in self.layers.parameters():
                p.fill_(0.25)
    def forward(self, x, *, residual=True):
        self.steps += 1
        for i, layer in enumerate(self.layers):
            h = layer(x) if x.shape[-1:] == (3,) and x.dtype == torch.float32 else x + i
            x = x + h if residual else h
        self.table["last"] = x.detach()
        if self.training:
            self.mean.mul_(0.5).add_(self.gain.detach())
        return x

DEEP = Deep()

def class_state():
    return [Box.kind, [kind.__dict__.get('made') for kind in (Shape, Round, Loud, Both)], kept.__defaults__]
'''
