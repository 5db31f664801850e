"""Statements of random programs that are about more than one of a function's own values: classes made inside, modules and their state,
views that share memory, deques and methods of containers, generators that are driven by hand, and what changes before the last call."""

from __future__ import annotations

from hypothesis import strategies as st
from programs import ERRORS, Writer


class WideWriter(Writer):
    more_plain = ("view_write", "method", "module_write", "wrapped")
    more_blocks = ("class_", "driven", "left_early", "module_call", "deque_")

    # ---- classes -------------------------------------------------------------------------------------------------------

    def class_(self) -> None:
        """A class, mostly of boxes, whose methods may read the function's variables, and an object of it."""
        name, base = self.fresh("C"), self.one("Box", "Crate", "Box", "object")
        self.say(f"class {name}({base}{self.one('', '', ', metaclass=type')}):")
        self.depth += 1
        self.say(f"kind = {self.expr('str')}")
        self.say(f"limit = {self.expr('int')}")
        if base == "object":
            self.say("def __init__(self, value, items=()):")
            self.inside("self.value, self.items = value, list(items)")
        for _ in range(self.draw(st.integers(1, 3))):
            self.member(base)
        self.depth -= 1
        target = self.fresh()
        self.say(f"{target} = {name}({self.expr('int')}{self.one('', ', ' + self.expr('list'))})")
        self.bind("box" if base != "object" else "live", target)
        value = self.fresh()
        self.say(f"{value} = {self.one(f'{target}.value', f'{name}.limit', f'{target}.limit', f'len({target}.kind)', f'isinstance({target}, Box)')}")
        self.bind("int", value)

    def inside(self, *lines: str) -> None:
        self.depth += 1
        for line in lines:
            self.say(line)
        self.depth -= 1

    def member(self, base: str) -> None:
        e = self.expr
        match self.draw(st.integers(0, 8)):
            case 0:
                self.say("def __len__(self):")
                self.inside(f"return {e('int')} % 3")
            case 1:
                self.say("@property")
                self.say("def twice(self):")
                self.inside(f"GLIST.append(self.kind)\n{'    ' * (self.depth + 1)}return self.value + {e('int')}")
            case 2:
                self.say(f"def __{self.one('add', 'radd', 'sub', 'mul')}__(self, other):")
                self.inside(f"return {self.one('NotImplemented', 'type(self)(self.value + 1)', e('int'))}")
            case 3:
                self.say("def __eq__(self, other):")
                self.inside(f"return {e('bool')}")
                self.say("__hash__ = None" if self.chance(30) else "def __hash__(self): return 3")
            case 4 if base != "object":
                self.say("def __call__(self, x, scale=2):")
                self.inside(f"return super().__call__(x, scale) * {e('int')}")
            case 5:
                self.say("def __getattr__(self, name):")
                self.inside(f"if name.startswith('dyn_'): return {e('int')}", "raise AttributeError(name)")
            case 6:
                self.say("def __setattr__(self, name, value):")
                self.inside("GLIST.append(name)", "super().__setattr__(name, value)")
            case 7:
                self.say(f"def __init_subclass__(cls, **more): cls.limit = {e('int')}")
            case _:
                self.say("def __iter__(self):")
                self.inside(f"yield {e('int')}", "yield from self.items")

    # ---- modules -------------------------------------------------------------------------------------------------------

    def module_write(self) -> None:
        e = self.expr
        self.say(
            self.one(
                f"NET.count = {e('int')}",
                f"NET.scale = {e('tensor')}",
                "NET.seen.add_(1)",
                f"NET.names.append({e('str')})",
                f"NET.seen = torch.full((3,), float({e('int')}))",
                "NET.train(not NET.training)",
                f"del NET.{self.one('count', 'scale', 'names')}",
                f"NET.register_buffer('more', {e('tensor')}.detach())",
                f"setattr(NET, 'late', {e('int')})",
                "NET.linear.bias.data.add_(1)",
            )
        )

    def module_call(self) -> None:
        target = self.fresh()
        if self.chance(15):
            handle = self.fresh("hook")
            self.say(f"{handle} = NET.register_forward_hook(lambda m, args, out: out {self.one('+', '*')} 2)")
            self.say("try:")  # hooks are numbered through the process: none may be left
            self.inside(f"{target} = NET({self.expr('tensor')})")
            self.say("finally:")
            self.inside(f"{handle}.remove()")
        else:
            self.say(f"{target} = NET({self.expr('tensor')}{self.one('', ', times=2', ', ' + self.expr('int') + ' % 3')})")
        self.bind("tensor", target)

    # ---- memory --------------------------------------------------------------------------------------------------------

    def view_write(self) -> None:
        """A view that is written to, or whose base is; both stay."""
        base, view = self.name("tensor") or "x", self.fresh()
        self.say(
            f"{view} = {base}"
            + self.one(
                "[1:]",
                ".view(-1)",
                "[..., 0]",
                ".detach()",
                "[:]",
                ".unsqueeze(0)",
                ".expand_as(" + base + ")",
                ".unbind()[0]",
                "[::2]",
                ".transpose(0, -1)",
            )
        )
        self.bind("tensor", view)
        if self.chance(50):
            self.tensor_write()
        written = self.one(view, base)
        self.say(
            self.one(
                f"{written}.add_({self.expr(self.one('float', 'tensor'))})",
                f"{written}[...] = {self.expr(self.one('float', 'tensor'))}",
                f"torch.mul({base}, 2, out={written})",
                f"{written}.copy_({self.one(view, base)})",
                f"{written}.data.mul_(2)",
                f"{written}.fill_({self.expr('float')})",
                f"{written}.clamp_(max={self.expr('float')})",
            )
        )

    # ---- containers ----------------------------------------------------------------------------------------------------

    def method(self) -> None:
        e = self.expr
        kind = self.one("list", "dict", "set")
        name, target = self.name(kind) or e(kind, 0), self.fresh()
        call = {
            "list": (f"pop({self.one('', '0', '-1', e('int'))})", f"index({e('int')})", "copy()", f"__contains__({e('int')})", "__len__()"),
            "dict": (f"pop({self.key()}, None)", "keys()", f"get({self.key()})", "copy()", f"setdefault({self.key()}, {e('int')})", "items()"),
            "set": (f"union({e('list')})", f"difference({e('set')})", "copy()", f"issubset({e('list')})", f"symmetric_difference({e('list')})"),
        }[kind]
        self.say(f"{target} = {name}.{self.one(*call)}")
        self.bind("live", target)

    def deque_(self) -> None:
        name = self.fresh("q")
        self.say(f"{name} = collections.deque({self.expr('list')}{self.one('', ', maxlen=2')})")
        for _ in range(self.draw(st.integers(1, 3))):
            e = self.expr
            self.say(
                self.one(
                    f"{name}.append({e('int')})", f"{name}.appendleft({e('int')})", f"{name}.extendleft({e('list')})", f"{name}.rotate({e('int')})",
                    f"GLIST.append({name}.{self.one('pop', 'popleft')}())", f"{name}[{self.one('0', '-1')}] = {e('int')}",
                    f"{name}.insert(1, {e('int')})",
                )
            )  # fmt: skip
        target = self.fresh()
        self.say(f"{target} = list({name})")
        self.bind("list", target)
        self.bind("live", name)

    # ---- generators and early exits ------------------------------------------------------------------------------------

    def driven(self) -> None:
        """A generator that answers what is sent and thrown into it, driven step by step."""
        name, live = self.fresh("h"), self.fresh()
        self.say(f"def {name}(total={self.expr('int')}):")
        self.depth += 1
        self.say(f"for j in range({self.one(3, 2)}):")
        self.depth += 1
        self.say("try:")
        self.inside(self.one("got = yield total + j", "got = yield x.sum().item()", "got = yield from counted(2)"), "total += got or 1")
        self.say(f"except {self.one('ValueError', 'GeneratorExit', '(ValueError, KeyError)')} as error:")
        self.inside(self.one("total -= 1", "yield -1", "raise KeyError(j)", "return total", "x.add_(1)"))
        if self.chance(40):
            self.say("finally:")
            self.inside(self.one("GLIST.append(total)", "cdynamo.graph_break()", "total += 1"))
        self.depth -= 2
        self.say(f"{live} = {name}()")
        for _ in range(self.draw(st.integers(1, 3))):
            step = self.one(
                "send(None)", f"send({self.expr('int')})", "throw(ValueError(1))", "__next__()", "close()", f"throw(Oops({self.expr('int')}))"
            )
            self.say(f"GLIST.append({live}.{step})")
        self.bind("live", live)

    def left_early(self) -> None:
        """A loop whose body is left through `finally` or a manager."""
        variable, count = self.fresh("i"), self.fresh("k")
        self.say(f"{count} = 0")
        self.say(f"for {variable} in {self.one('range(3)', self.expr('list') + '[:3]')}:")
        self.depth += 1
        form = self.draw(st.integers(0, 2))
        self.say(("try:", f"with Crate({self.expr('int')}):", "with managed(GLIST, True):")[form])
        inside = self.scope.inside(loop=True)
        inside.names.setdefault("int", []).append(variable)
        self.block(2, inside)
        self.inside(self.one("continue", "break", f"raise {self.one(*ERRORS)}({variable})", "cdynamo.graph_break()"))
        if form == 0:
            if self.chance(50):
                self.say(f"except {self.one('LookupError', 'ValueError')}:")
                self.inside(f"{count} += 1")
            self.say("finally:")
            self.inside(f"{count} += {self.one(1, 2)}", *self.one((), ("continue",), ("break",)))
        self.depth -= 1
        self.bind("int", count)

    def wrapped(self) -> None:
        """A break in the middle of an expression."""
        kind, target = self.one("list", "tensor", "str", "box", "bool", "int"), self.fresh()
        forms = "opaque({})", "(cdynamo.graph_break() or {})", "[{}, opaque(1)][0]"
        self.say(f"{target} = {self.one(*forms).format(self.expr(kind))}")
        self.bind(kind, target)

    # ---- before the last call ------------------------------------------------------------------------------------------

    def change(self) -> list[str]:
        change = self.one(
            "pass", "pass", "global G; G = 3", "GLIST.append(9)", "GDICT['a'] = 4", "Box.kind = 'other'", "Box.clamp = staticmethod(lambda v: v + 1)",
            "NET.count = 7", "NET.eval()", "NET.seen = torch.ones(3)", "Box.__len__ = lambda self: 2", "Crate.limit = 5",
        )  # fmt: skip
        return ["def change():", *(f"    {part}" for part in change.split("; ")), ""]
