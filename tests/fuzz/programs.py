"""Random programs: a strategy whose examples are the text of a module with a function `f(x, y, n, items, d, o)`, by types.

Variables are known by the type they hold, so that most expressions mean something and run; the rest of the programs raise, which is
compared too. Every loop is bounded, also where its body writes to what it reads. Choices stand from plain to odd: hypothesis shrinks towards the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from prelude import PRELUDE
from prelude_more import MORE

TYPES = ("int", "tensor", "list", "str", "dict", "float", "bool", "box", "tuple", "set")
ERRORS = ("ValueError", "KeyError", "IndexError", "TypeError", "ZeroDivisionError", "Oops", "RuntimeError")


@dataclasses.dataclass
class Scope:
    names: dict[str, list[str]]
    loop: bool = False  # break and continue are allowed
    function: str = "f"  # "f", "inner", "generator"
    handler: bool = False  # a bare raise is allowed
    outer: list[str] = dataclasses.field(default_factory=list)  # ints that nonlocal may name
    finally_: bool = False

    def inside(self, **changes: Any) -> Scope:
        return dataclasses.replace(self, names={kind: list(names) for kind, names in self.names.items()}, **changes)


class Writer:
    more_plain: tuple[str, ...] = ()  # further kinds of statements
    more_blocks: tuple[str, ...] = ()

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.depth = 0
        self.count = 0
        self.budget = 45
        self.scope = Scope({"tensor": ["x", "y"], "int": ["n"], "list": ["items"], "dict": ["d"], "box": ["o"]})

    # ---- choosing ------------------------------------------------------------------------------------------------------

    def one(self, *options: Any) -> Any:
        return options[self.draw(st.integers(0, len(options) - 1))]

    def chance(self, percent: int) -> bool:
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def name(self, kind: str) -> str | None:
        names = self.scope.names.get(kind)
        return self.one(*reversed(names)) if names else None

    def bind(self, kind: str, name: str) -> None:
        for names in self.scope.names.values():
            if name in names:
                names.remove(name)
        self.scope.names.setdefault(kind, []).append(name)

    def say(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    # ---- expressions ---------------------------------------------------------------------------------------------------

    def expr(self, kind: str, depth: int = 2) -> str:
        name = self.name(kind)
        if name is not None and (depth <= 0 or self.chance(45)):
            return name
        return getattr(self, f"{kind}_expr")(depth - 1)

    def literal_int(self) -> str:
        return str(self.one(1, 2, 3, 0, 5, -1, 7))

    def int_expr(self, k: int) -> str:
        if k < 0:
            return self.literal_int()
        e = self.expr
        pick = self.draw(st.integers(0, 27))
        match pick:
            case 0 | 1:
                return self.literal_int()
            case 2 | 3:
                return f"({e('int', k)} {self.one('+', '-', '*')} {e('int', k)})"
            case 4:
                return f"({e('int', k)} {self.one('//', '%')} {self.one('3', '2', '5', e('int', k))})"
            case 5:
                return f"len({e(self.one('list', 'str', 'dict', 'tuple', 'set', 'box'), k)})"
            case 6:
                return f"({e('list', k)}{self.one(' or [8]', ' or [8]', '')})[{self.one('0', '-1', '0', e('int', k))}]"
            case 7:
                return f"sum({e('list', k)})"
            case 8:
                return f"{self.one('max', 'min')}({e('int', k)}, {e('int', k)})"
            case 9:
                return f"{e('dict', k)}.get({self.key()}, {e('int', k)})"
            case 10:
                return f"{e('dict', k)}[{self.key()}]" if self.chance(40) else f"{{'c': 3, **{e('dict', k)}}}['c']"
            case 11:
                return f"{e('tensor', k)}.{self.one('shape[0]', 'dim()', 'numel()', 'size(-1)')}"
            case 12:
                return f"({e('int', k)} if {e('bool', k)} else {e('int', k)})"
            case 13:
                return f"{e('box', k)}.{self.one('value', 'twice', 'dyn_a', 'dyn_bcd')}"
            case 14:
                return f"varied({self.star_args(k)})"
            case 15:
                return f"Box.clamp({e('int', k)})"
            case 16:
                return f"failing({self.one('2', '5', '8', e('int', k))})"
            case 17:
                return f"abs({e('int', k)})"
            case 18:
                return f"functools.reduce(lambda a, b: a {self.one('+', '-', '*')} b, {e('list', k)}, {e('int', k)})"
            case 19:
                return f"int({e('tensor', k)}.sum().item())"
            case 20:
                return f"next(iter({e('list', k)}), {e('int', k)})"
            case 21:
                return f"{e('list', k)}.{self.one('count', 'count', 'count', 'index')}({e('int', k)})"
            case 22:
                return "G"
            case 23:
                return f"(lambda a, *b, c={e('int', k)}: a + c + len(b))({e('int', k)}, *{e('list', k)})"
            case 24:
                return f"({e('int', k)} {self.one('&', '|', '^')} {e('int', k)})"
            case 25:
                return f"hash({e('int', k)})"
            case 26:
                return f"opaque({e('int', k)})"
            case _:
                return f"int({self.one(repr('7'), repr(' 12 '), e('str', k))})"

    def float_expr(self, k: int) -> str:
        if k < 0:
            return self.one("0.5", "2.0", "-1.5", "0.0")
        e = self.expr
        match self.draw(st.integers(0, 7)):
            case 0:
                return self.one("0.5", "2.0", "-1.5", "0.0")
            case 1:
                return f"float({e('int', k)})"
            case 2:
                return f"({e('int', k)} / {self.one('2', '4', e('int', k))})"
            case 3:
                return f"math.sqrt(abs({e('int', k)}))"
            case 4:
                return f"({e('float', k)} {self.one('+', '-', '*')} {e('float', k)})"
            case 5:
                return f"round({e('float', k)}, 2)"
            case 6:
                return f"{e('tensor', k)}.max().item()"
            case _:
                return f"math.{self.one('floor', 'sin', 'exp')}({e('float', k)} % 3)"

    def bool_expr(self, k: int) -> str:
        if k < 0:
            return self.one("True", "False")
        e = self.expr
        match self.draw(st.integers(0, 11)):
            case 0 | 1 | 2:
                return f"({e('int', k)} {self.one('<', '>', '==', '!=', '<=')} {e('int', k)})"
            case 3:
                return f"({e('bool', k)} {self.one('and', 'or')} {e('bool', k)})"
            case 4:
                return f"(not {e(self.one('bool', 'list', 'int', 'box', 'str'), k)})"
            case 5:
                return f"({e('int', k)} {self.one('in', 'not in')} {e(self.one('list', 'set', 'tuple', 'box'), k)})"
            case 6:
                return f"({self.key()} in {e('dict', k)})"
            case 7:
                return f"{self.one('any', 'all')}(q {self.one('>', '<')} {e('int', k)} for q in {e('list', k)})"
            case 8:
                return f"isinstance({e(self.one(*TYPES), k)}, {self.one('int', 'Box', 'torch.Tensor', '(list, tuple)', 'int | str', 'Crate')})"
            case 9:
                return f"({e('box', k)} {self.one('==', '<', 'is', 'is not', '!=')} {e('box', k)})"
            case 10:
                return f"bool({e('tensor', k)}.sum() {self.one('>', '<')} {e('float', k)})"
            case _:
                return f"({e('list', k)} {self.one('==', '<', '!=')} {e('list', k)})"

    def key(self) -> str:
        return self.one("'a'", "'b'", "'c'", "'zz'")

    def str_expr(self, k: int) -> str:
        if k < 0:
            return self.one("'s'", "'two words'", "''")
        e = self.expr
        match self.draw(st.integers(0, 10)):
            case 0:
                return self.one("'s'", "'two words'", "''")
            case 1:
                return f"repr({e(self.one('int', 'str', 'list', 'float'), k)})"
            case 2:
                spec = self.one("", ":>5", "!r", ":03d", ":{n % 4}")
                name = self.name("int") or "G"
                return f'f"<{{{name}{spec}}}>{{{name} + 1=}}"'
            case 3:
                return f"str({e(self.one('int', 'list', 'bool', 'float', 'box', 'dict', 'tuple'), k)})"
            case 4:
                return f"({e('str', k)} + {e('str', k)})"
            case 5:
                return f"{e('str', k)}.{self.one('upper()', 'strip()', 'title()', 'rsplit()[-1:].__str__()', 'zfill(4)', 'center(7)')}"
            case 6:
                return f"'-'.join(str(q) for q in {e('list', k)})"
            case 7:
                return f"'%s:%r' % ({e('int', k)}, {e('str', k)})"
            case 8:
                return f"'{{}} {{0}}'.format({e('int', k)})" if self.chance(20) else f"'{{0}}/{{a:>4}}'.format({e('int', k)}, a={e('int', k)})"
            case 9:
                return f"format({e('box', k)}, {self.one(repr(''), repr('3d'), repr('x'))})"
            case _:
                return f"{e('str', k)}[{self.one('1:', '::-1', ':2', '-3:')}]"

    def list_expr(self, k: int) -> str:
        if k < 0:
            return self.one("[1, 2, 3]", "[]", "[4, 0]")
        e = self.expr
        match self.draw(st.integers(0, 16)):
            case 0:
                return self.one("[1, 2, 3]", "[]", "[4, 0]")
            case 1:
                return f"[{e('int', k)}, {e('int', k)}]"
            case 2:
                return f"[q {self.one('+', '*', '-')} {e('int', k)} for q in {e('list', k)}]"
            case 3:
                return f"[q for q in {e('list', k)} if q {self.one('>', '!=')} {e('int', k)}]"
            case 4:
                return f"sorted({e('list', k)}{self.one('', ', reverse=True', ', key=lambda q: -q', ', key=abs')})"
            case 5:
                return f"{e('list', k)}[{self.one('1:', '::-1', ':2', '-2:', '::2')}]"
            case 6:
                return f"list(range({e('int', k)} % 4))"
            case 7:
                return f"[*{e('list', k)}, *{e(self.one('list', 'tuple', 'box'), k)}]"
            case 8:
                return f"({e('list', k)} + {e('list', k)})"
            case 9:
                return f"list({self.iterable(k)})"
            case 10:
                return f"[p {self.one('+', '*')} q for p in {e('list', k)} for q in {e('list', k)}][:4]"
            case 11:
                return f"list(map(lambda q: q {self.one('+', '*')} {e('int', k)}, {e('list', k)}))"
            case 12:
                return f"list({e('dict', k)}.values())"
            case 13:
                return f"[p - q for p, q in zip({e('list', k)}, {self.iterable(k)}{self.one('', '', '', ', strict=True')})]"
            case 14:
                return f"{e('list', k)}.copy()"
            case 15:
                return f"({e('list', k)} * {self.one(2, 1, 0)})"
            case _:
                return f"list(itertools.{self.iter_tool(k)})"

    def iter_tool(self, k: int) -> str:
        e = self.expr
        return self.one(
            f"chain({e('list', k)}, {e('list', k)})",
            f"islice(itertools.count({e('int', k)}), 3)",
            f"accumulate({e('list', k)})",
            f"takewhile(lambda q: q < {e('int', k)}, {e('list', k)})",
            f"repeat({e('int', k)}, 2)",
            f"compress({e('list', k)}, [1, 0, 1])",
            f"starmap(max, zip({e('list', k)}, {e('list', k)}))",
        )

    def iterable(self, k: int) -> str:
        e = self.expr
        name = self.name("generator")
        return self.one(
            e("list", k),
            f"counted({e('int', k)} % 4)",
            f"(q for q in {e('list', k)} if q != {e('int', k)})",
            f"delegating({e('int', k)} % 3)",
            f"reversed({e('list', k)})",
            e("box", k),
            f"filter(None, {e('list', k)})",
            f"{name}()" if name else f"range({e('int', k)} % 3)",
        )

    def dict_expr(self, k: int) -> str:
        if k < 0:
            return self.one("{'a': 1}", "{}", "{'b': 2, 'a': 0}")
        e = self.expr
        match self.draw(st.integers(0, 5)):
            case 0:
                return self.one("{'a': 1}", "{}", "{'b': 2, 'a': 0}")
            case 1:
                return f"{{{self.key()}: {e('int', k)}, {self.key()}: {e('int', k)}}}"
            case 2:
                return f"{{key: val + {e('int', k)} for key, val in {e('dict', k)}.items()}}"
            case 3:
                return f"{{**{e('dict', k)}, {self.key()}: {e('int', k)}}}"
            case 4:
                return f"({e('dict', k)} | {e('dict', k)})"
            case _:
                return f"dict(zip('abc', {e('list', k)}))"

    def set_expr(self, k: int) -> str:
        if k < 0:
            return self.one("{1, 2}", "set()")
        e = self.expr
        return self.one(
            "{1, 2}", f"set({e('list', k)})", f"{{q % 3 for q in {e('list', k)}}}",
            f"({e('set', k)} {self.one('|', '&', '-', '^')} {e('set', k)})", f"frozenset({e('list', k)})",
        )  # fmt: skip

    def tuple_expr(self, k: int) -> str:
        e = self.expr
        if k < 0:
            return "(1, 2)"
        return self.one(
            f"({e('int', k)}, {e('int', k)})", f"tuple({self.iterable(k)})", f"({e('int', k)}, *{e('list', k)})", f"divmod({e('int', k)}, {self.one('3', e('int', k))})",
        )  # fmt: skip

    def box_expr(self, k: int) -> str:
        if k < 0:
            return "Box(2)"
        e = self.expr
        return self.one(
            f"Box({e('int', k)})", f"Box({e('int', k)}, {e('list', k)})", f"({e('box', k)} + {e('box', k)})", f"({e('int', k)} + {e('box', k)})",
            f"Box.make({e('int', k)})", f"Crate({e('int', k)}, tag={e('str', k)})", f"max({e('box', k)}, {e('box', k)})",
        )  # fmt: skip

    def tensor_expr(self, k: int) -> str:
        if k < 0:
            return self.name("tensor") or "x"
        e = self.expr
        match self.draw(st.integers(0, 21)):
            case 0 | 1 | 2:
                return f"({e('tensor', k)} {self.one('+', '*', '-')} {e(self.one('tensor', 'float', 'int'), k)})"
            case 3:
                return f"{e('tensor', k)}.{self.one('sin', 'relu', 'neg', 'exp', 'cos', 'abs')}()"
            case 4:
                return f"torch.{self.one('relu', 'tanh', 'sigmoid')}({e('tensor', k)})"
            case 5:
                return f"{e('tensor', k)}.{self.one('sum()', 'mean(-1, keepdim=True)', 'max()', 'cumsum(0)')}"
            case 6:
                return f"{e('tensor', k)}.{self.one('view(-1)', 'reshape(-1)', 'unsqueeze(0)', 'flatten()', 't()', 'squeeze()')}"
            case 7:
                return f"{e('tensor', k)}[{self.one('0', '1:', '-1', ':, None', '...', 'None', e('int', k))}]"
            case 8:
                return f"torch.{self.one('zeros(3)', 'ones(3)', 'arange(3)', 'full((3,), 1.5)', 'eye(3)', 'rand(3)')}"
            case 9:
                return f"torch.{self.one('zeros_like', 'ones_like', 'clone')}({e('tensor', k)})"
            case 10:
                return f"torch.cat([{e('tensor', k)}, {e('tensor', k)}])"
            case 11:
                return f"torch.stack([{e('tensor', k)}, {e('tensor', k)}]).sum(0)"
            case 12:
                return f"torch.where({e('tensor', k)} > {e('float', k)}, {e('tensor', k)}, {e('tensor', k)})"
            case 13:
                return f"{e('tensor', k)}.{self.one('clone', 'detach', 'contiguous', 'double')}()"
            case 14:
                return f"{e('box', k)}({e('tensor', k)}{self.one('', ', scale=3', ', 4')})"
            case 15:
                return f"torch.tensor({e('list', k)}, dtype=torch.float32)"
            case 16:
                return f"({e('tensor', k)} @ {e('tensor', k)})"
            case 17:
                return f"sum([{e('tensor', k)}, {e('tensor', k)}])"
            case 18:
                return f"opaque({e('tensor', k)})"
            case 19:
                return f"functools.partial(torch.add, alpha={e('int', k)})({e('tensor', k)}, {e('tensor', k)})"
            case 20:
                return f"torch.tensor({e('int', k)}.__float__())"
            case _:
                return f"(w := {e('tensor', k)}) * w"

    def star_args(self, k: int) -> str:
        e = self.expr
        return self.one(
            e("int", k), f"{e('int', k)}, {e('int', k)}", f"*{e('list', k)}, 1", f"{e('int', k)}, *{e('list', k)}, c={e('int', k)}",
            f"{e('int', k)}, **{e('dict', k)}", f"{e('int', k)}, **{{**{e('dict', k)}, 'c': 1}}", f"b={e('int', k)}",
        )  # fmt: skip

    # ---- statements ----------------------------------------------------------------------------------------------------

    def block(self, size: int, scope: Scope | None = None) -> None:
        """Its own names are not seen behind it, except now and then."""
        outside = self.scope
        self.scope = scope or outside.inside()
        self.depth += 1
        before = len(self.lines)
        for _ in range(self.draw(st.integers(1, size))):
            if not self.statement():
                break
        if len(self.lines) == before:
            self.say("pass")
        self.depth -= 1
        if self.scope.function == outside.function and self.chance(4):
            outside.names = self.scope.names
        self.scope = outside

    def statement(self) -> bool:
        """False: nothing behind it is reached."""
        self.budget -= 1
        if self.budget <= 0:
            return False
        deep = self.depth > 3 or self.budget < 8
        plain = ("assign", "assign", "tensor_write", "mutate", "augment", "effect", "assign", "call", "unpack")
        blocks = ("if_", "for_", "try_", "with_", "while_", "match_", "inner", "generator", "break_", "jump", "closures")
        return getattr(self, self.one(*plain, *self.more_plain, *(() if deep else (*blocks, *blocks, *self.more_blocks))))() is not False

    def assign(self) -> None:
        kind = self.one("tensor", "int", *TYPES)
        value = self.expr(kind, 3)
        name = self.name(kind) if self.chance(25 if self.scope.function == "f" else 3) else None
        name = name or self.fresh()
        self.say(f"{name} = {value}" if not self.chance(8) else f"{name} = {self.fresh()} = {value}")
        self.bind(kind, name)

    def unpack(self) -> None:
        a, b = self.fresh(), self.fresh()
        form = self.draw(st.integers(0, 3))
        if form == 0:
            self.say(f"{a}, {b} = {self.expr('int')}, {self.expr('int')}")
            self.bind("int", b)
        elif form == 1:
            self.say(f"{a}, *{b} = {self.one('0, *', '0, *', '')}{self.expr(self.one('list', 'tuple', 'box'))}")
            self.bind("list", b)
        elif form == 2:
            self.say(f"{a}, ({b}, *_) = {self.expr('int')}, {self.expr('list')}{self.one(' + [6]', ' + [6]', '')}")
            self.bind("int", b)
        else:
            self.say(f"({a} := {self.expr('int')})")
        self.bind("int", a)

    def tensor_write(self) -> None:
        target = self.name("tensor") or "x"
        e = self.expr
        if self.scope.function != "f":
            self.say(f"{target}.add_({e(self.one('float', 'tensor'))})")
            return
        self.say(
            self.one(
                f"{target}.add_({e(self.one('float', 'tensor'))})",
                f"{target}.mul_({e(self.one('float', 'int'))})",
                f"{target}[0] = {e('float')}",
                f"{target} += {e(self.one('tensor', 'float'))}",
                f"{target}.copy_({e('float')} * {target})",
                f"{target}[1:] *= {e('float')}",
                f"{target}.view(-1).sub_({e('float')})",
                f"{target}.zero_()",
                f"{target}[{target} > {e('float')}] = {e('float')}",
                f"{target}.note = {e('int')}",
                f"torch.sin({target}, out={target}.clone())",
            )
        )

    def mutate(self) -> None:
        e = self.expr
        match self.draw(st.integers(0, 5)):
            case 0 | 1:
                name = self.one(self.name("list") or "items", "GLIST")
                self.say(
                    f"{name}"
                    + self.one(
                        f".append({e('int')})",
                        f".extend(itertools.islice({self.iterable(1)}, 4))",
                        f".insert(0, {e('int')})",
                        ".sort()",
                        ".reverse()",
                        f"[{self.one('0', '-1', '9')}:] = {e('list')}",
                        f"[1:2] = {e('list')}",
                        ".clear()",
                        f"[len({name}):] = {e('list')}",
                        f" += {e(self.one('list', 'tuple'))}",
                    )
                    if self.chance(85)
                    else self.one(f"del {name}[-1:]", f"del {name}[0]", f"{name}.pop()", f"{name}.remove({e('int')})", f"{name}[::2] = {e('list')}")
                )
            case 2:
                name = self.one(self.name("dict") or "d", "GDICT")
                self.say(
                    self.one(
                        f"{name}[{self.key()}] = {e('int')}",
                        f"{name}.update({e('dict')})",
                        f"{name}.pop({self.key()}{self.one(', 0', '')})",
                        f"{name}.setdefault({self.key()}, {e('int')})",
                        f"{name} |= {e('dict')}" if name != "GDICT" else "pass",
                        f"{name}.clear()",
                        f"{name}.popitem()",
                        f"{name}[{self.key()}] += {e('int')}",
                        f"del {name}[{self.key()}]",
                    )
                )
            case 3:
                name = self.name("box") or "o"
                self.say(
                    self.one(
                        f"{name}.value = {e('int')}",
                        f"{name}.items.append({e('int')})",
                        f"{name} += {e('int')}" if self.scope.function == "f" else f"{name}.value += 1",
                        f"{name}.twice = {e('int')}",
                        f"{name}.extra = {e('tensor')}",
                        f"{name}[0:1] = {e('list')}",
                        f"del {name}[:1]",
                        f"del {name}.{self.one('extra', 'value')}",
                        f"setattr({name}, 'late', {e('int')})",
                        f"{name}.link = {e('box')}",
                    )
                )
            case 4:
                name = self.name("set")
                self.say(f"{name}.{self.one('add', 'discard', 'remove')}({e('int')})" if name else f"items.append({e('int')})")
            case _:
                self.say(f"{self.name('int') or 'n'} = {e('int')}" if self.scope.function == "f" else "GLIST.append(1)")

    def augment(self) -> None:
        kind = self.one("int", "str", "list", "float", "tuple")
        name = self.name(kind)
        if name is None or (self.scope.function != "f" and not self.chance(10)):
            return self.assign()
        operator = self.one("+=", "-=", "*=") if kind in ("int", "float") else "+="
        self.say(f"{name} {operator} {self.expr(kind)}")

    def effect(self) -> None:
        e = self.expr
        self.say(
            self.one(
                f"print({e('int')}, {e('str')}, sep={self.one(repr(' '), repr('|'))})",
                f"print({e('tensor')}.shape)",
                f"GLIST.append({e('int')})",
                f"GDICT[{self.key()}] = {e('int')}",
                f"globals()['G'] = {e('int')}" if self.chance(10) else f"GLIST[:] = {e('list')}",
                f"warnings.warn({e('str')})",
                f"print(f'{{{self.name('tensor') or 'x'}}}')",
                f"assert {e('bool')}, {e('str')}",
            )
        )

    def call(self) -> None:
        name = self.name("function")
        if name is None:
            return self.inner()
        target = self.fresh()
        self.say(f"{target} = {name}({self.expr('int')}{self.one('', ', 2', ', k=3', ', *items')})")
        self.bind("int", target)

    def if_(self) -> None:
        self.say(f"if {self.condition()}:")
        self.block(3)
        if self.chance(30):
            self.say(f"elif {self.condition()}:")
            self.block(2)
        if self.chance(50):
            self.say("else:")
            self.block(2)

    def condition(self) -> str:
        return self.one(
            self.expr("bool"), self.expr("bool"), f"({self.fresh('w')} := {self.expr('int')}) > 1", self.expr(self.one("list", "box", "str", "dict")),
            f"{self.expr('tensor')}.sum() > {self.expr('float')}", f"{self.expr('tensor')}.sum().item() > 1", "torch.is_grad_enabled()",
        )  # fmt: skip

    def for_(self) -> None:
        variable = self.fresh("i")
        form = self.draw(st.integers(0, 6))
        kind = "int"
        if form == 0:
            self.say(f"for {variable} in range({self.one('2', '3', 'n % 4', self.expr('int') + ' % 3')}):")
        elif form == 1:
            self.say(f"for {variable} in {self.expr('list')}[:4]:")
        elif form == 2:
            self.say(
                f"for {variable} in list({self.iterable(1)})[:4]:"
                if self.chance(50)
                else f"for {variable} in itertools.islice({self.iterable(1)}, 4):"
            )
        elif form == 3:
            self.say(f"for key, {variable} in {self.one('', 'list')}({self.expr('dict')}.items()):")
        elif form == 4:
            self.say(f"for {self.fresh('i')}, {variable} in enumerate({self.expr('list')}[:3]):")
        elif form == 5:
            self.say(f"for {variable} in {self.expr('tensor')}:")
            kind = "tensor"
        else:
            self.say(f"for {self.fresh('i')}, {variable} in zip({self.expr('list')}[:4], {self.iterable(1)}):")
        inside = self.scope.inside(loop=True)
        inside.names.setdefault(kind, []).append(variable)
        self.block(3, inside)
        if self.chance(25):
            self.say("else:")
            self.block(2)

    def while_(self) -> None:
        counter = self.fresh("k")
        self.say(f"{counter} = {self.one(2, 1, 3)}")
        self.say(f"while {counter} > 0{self.one('', ' and ' + self.expr('bool'))}:")
        self.depth += 1
        self.say(f"{counter} -= 1")
        self.depth -= 1
        self.block(3, self.scope.inside(loop=True))
        if self.chance(25):
            self.say("else:")
            self.block(2)

    def try_(self) -> None:
        self.say("try:")
        self.block(3)
        form = self.draw(st.integers(0, 4))
        if form != 4:
            for _ in range(self.draw(st.integers(1, 2))):
                kinds = self.one("Exception", *ERRORS, "(ValueError, KeyError)", "ArithmeticError", "LookupError")
                error = self.fresh("e")
                self.say(f"except {kinds} as {error}:")
                inside = self.scope.inside(handler=True)
                if self.chance(40):
                    self.depth += 1
                    self.say(f"GLIST.append((type({error}).__name__, {self.one(f'str({error})', f'{error}.args', f'repr({error}.__context__)')}))")
                    self.depth -= 1
                self.block(2, inside)
                if kinds == "Exception":
                    break
            if self.chance(25):
                self.say("else:")
                self.block(2)
        if form >= 3:
            self.say("finally:")
            self.block(2, self.scope.inside(finally_=True))

    def with_(self) -> None:
        name = self.fresh("m")
        kind = "int"
        match self.draw(st.integers(0, 7)):
            case 0:
                self.say("with torch.no_grad():")
            case 1:
                self.say(f"with Crate({self.expr('int')}) as {name}:")
                kind = "box"
            case 2:
                self.say(f"with managed(GLIST, {self.one('False', 'True')}) as {name}:")
            case 3:
                self.say(f"with contextlib.suppress({self.one(*ERRORS)}):")
            case 4:
                self.say(f"with contextlib.nullcontext({self.expr('int')}) as {name}, torch.set_grad_enabled({self.one('True', 'False')}):")
            case 5:
                self.say(f"with managed(GLIST) as {name}, Crate({self.expr('int')}):")
            case 6:
                self.say(f"with contextlib.ExitStack() as {self.fresh('s')}:")
                self.depth += 1
                self.say(f"{name} = s{self.count}.enter_context(managed(GLIST))")
                self.say(f"s{self.count}.callback(GLIST.append, {self.expr('int')})")
                self.depth -= 1
            case _:
                self.say(f"with torch.enable_grad(), contextlib.closing(counted(3)) as {self.fresh('m')}:")
                name = ""
        inside = self.scope.inside()
        if name and "as " + name in self.lines[-1]:
            inside.names.setdefault(kind, []).append(name)
        self.block(3, inside)

    def match_(self) -> None:
        kind = self.one("int", "list", "dict", "box", "str", "tuple")
        self.say(f"match {self.expr(kind)}:")
        a, b = self.fresh(), self.fresh()
        patterns: list[tuple[str, str | None]] = {
            "int": [("0 | 1", None), (f"int({a})", "int"), (f"{a} if {self.expr('bool')}", "int")],
            "list": [(f"[{a}, *{b}]", "int"), ("[]", None), (f"[{a}, {b}]", "int"), ("[1, _, *_]", None)],
            "dict": [(f"{{'a': {a}, **{b}}}", "int"), (f"{{'b': {a}}}", "int"), ("{}", None)],
            "box": [(f"Crate(value={a})", "int"), (f"Box(value={a}, items=[_, *_])", "int"), (f"Box() as {a}", "box")],
            "str": [("'s' | 'two words'", None), (f"str() as {a}", "str")],
            "tuple": [(f"({a}, {b})", "int"), (f"(1, *{b})", None), (f"tuple({a})", None)],
        }[kind]
        self.cases(patterns[: self.draw(st.integers(1, len(patterns)))], a)

    def cases(self, patterns: list[tuple[str, str | None]], name: str) -> None:
        """Inside a match: a block for each pattern, and the kind of what it binds to the name, if it does."""
        self.depth += 1
        for pattern, bound in patterns:
            self.say(f"case {pattern}:")
            inside = self.scope.inside()
            if bound:
                inside.names.setdefault(bound, []).append(name)
            self.block(2, inside)
        if self.chance(60):
            self.say("case _:")
            self.block(2)
        self.depth -= 1

    def inner(self) -> None:
        name = self.fresh("g")
        outer = list(self.scope.names.get("int", ())) if self.scope.function == "f" else []
        parameter = self.fresh("p")
        form = self.one(f"{parameter}", f"{parameter}, k=1", f"{parameter}, *rest, k=1, **more", f"{parameter}, k={self.expr('int')}")
        self.say(f"def {name}({form}):")
        inside = self.scope.inside(loop=False, function="inner", handler=False, finally_=False, outer=outer)
        inside.names.setdefault("int", []).append(parameter)
        if "k=" in form:
            inside.names["int"].append("k")
        if "rest" in form:
            inside.names.setdefault("tuple", []).append("rest")
        self.locals_of(inside, outer)
        self.block(3, inside)
        self.depth += 1
        self.say(f"return {self.expr_in(inside, 'int')}")
        self.depth -= 1
        self.bind("function", name)
        if self.chance(70):
            self.call()

    def locals_of(self, inside: Scope, outer: list[str]) -> None:
        """What of the outer function the inner one writes, and what it only reads: names that it would make its own are not read."""
        self.depth += 1
        if outer and self.chance(50):
            self.say(f"nonlocal {outer[-1]}")
            self.say(f"{outer[-1]} {self.one('+=', '=')} {self.expr_in(inside, 'int')}")
        elif self.scope.function == "f" and self.chance(20):
            self.say("global G")
            self.say(f"G = {self.expr_in(inside, 'int')}")
        self.depth -= 1

    def expr_in(self, scope: Scope, kind: str) -> str:
        outside, self.scope = self.scope, scope
        text = self.expr(kind)
        self.scope = outside
        return text

    def generator(self) -> None:
        name = self.fresh("h")
        self.say(f"def {name}(count=3):")
        outer = list(self.scope.names.get("int", ())) if self.scope.function == "f" else []
        inside = self.scope.inside(loop=False, function="generator", handler=False, finally_=False)
        inside.names["int"] = [*inside.names.get("int", ()), "count"]
        self.locals_of(inside, outer)
        self.depth += 1
        guarded = self.chance(40)
        if guarded:
            self.say("try:")
            self.depth += 1
        self.say(f"for j in range(count{self.one('', ' % 3', ' + 1')}):")
        inside.names["int"].append("j")
        self.block(2, inside.inside(loop=True))
        self.depth += 1
        self.say(
            self.one(
                f"yield {self.expr_in(inside, 'int')}", f"got = yield {self.expr_in(inside, 'int')}", f"yield from {self.expr_in(inside, 'list')}[:4]"
            )
        )
        self.depth -= 1
        if guarded:
            self.depth -= 1
            self.say(self.one("finally:", "except ValueError as error:", "except GeneratorExit:"))
            self.depth += 1
            self.say(self.one("GLIST.append(77)", "x.add_(1)", "print('closed')"))
            self.depth -= 1
        self.depth -= 1
        self.bind("generator", name)
        target = self.fresh()
        match self.draw(st.integers(0, 6)):
            case 0:
                self.say(f"{target} = list({name}())")
                self.bind("list", target)
            case 1:
                self.say(f"{target} = {name}()")
                self.say(f"{self.fresh()} = next({target}, 0)")
                self.bind("int", f"v{self.count}")
                self.bind("live", target)
            case 2:
                self.say(f"{target} = {name}(2)")
                self.say(f"next({target})")
                self.say(f"GLIST.append({target}.{self.one('send(2)', 'close()', 'throw(ValueError(7))', 'send(None)')})")
            case 3:
                self.say(f"{target} = [{self.expr('int')} + q for q in {name}({self.expr('int')} % 3)]")
                self.bind("list", target)
            case 4:
                self.say(f"for {target} in {name}():")
                inside = self.scope.inside(loop=True)
                inside.names.setdefault("int", []).append(target)
                self.block(3, inside)
            case 5:
                self.say(f"{target}, *{self.fresh()} = {name}()")
                self.bind("int", target)
            case _:
                self.say(f"{target} = sum({name}(2), start={self.expr('int')})")
                self.bind("int", target)

    def closures(self) -> None:
        made, target = self.fresh("c"), self.fresh()
        self.say(f"{made} = [lambda a, z=z{self.one('', ', *r')}: a + z + {self.expr('int')} for z in {self.expr('list')}[:3]]")
        self.say(f"{target} = [c({self.expr('int')}) for c in {made}]")
        self.bind("list", target)
        self.bind("live", made)

    def break_(self) -> None:
        e = self.expr
        self.say(
            self.one(
                "cdynamo.graph_break()",
                f"opaque({e('tensor')})",
                f"GLIST.append({e('tensor')}.sum().item())",
                f"GLIST.append(opaque({e('list')}))",
            )
        )

    def jump(self) -> bool:
        kind = self.one("raise", *(("break", "continue") * 2 if self.scope.loop else ()), "return")
        e = self.expr
        if kind in ("break", "continue"):
            self.say(kind)
        elif kind == "raise":
            error = self.one(*ERRORS)
            self.say(
                self.one(
                    f"raise {error}({e('int')}, {e('str')})",
                    f"raise {error}({e('str')}) from None",
                    f"raise {error} from ValueError({e('int')})",
                    f"raise Oops(code={e('int')})",
                    "raise" if self.scope.handler else f"raise {error}",
                )
            )
        elif self.scope.function == "generator" and self.chance(50):
            self.say("return")
        else:
            self.say(f"return {e(self.one('int', 'tensor') if self.scope.function == 'f' else 'int')}")
        return False

    def function(self) -> None:
        self.say("def f(x, y, n, items, d, o):")
        scope = self.scope
        self.depth += 1
        self.say("v0 = x * 2 + 1")
        self.bind("tensor", "v0")
        self.depth -= 1
        self.block(9, scope)
        seen = [name for kind in (*TYPES, "live", "function") for name in scope.names.get(kind, ())]
        wanted = seen if len(seen) < 8 else [name for name in seen if self.chance(60)]
        self.depth += 1
        self.say(f"return {', '.join(wanted) or 'None'},")
        self.depth -= 1

    def arguments(self) -> list[str]:
        """Two ways to call it: as captured, and with something changed."""
        x = self.one("t(3)", "t(3)", "t(2, 3)", "t(3, grad=True)", "t(3, dtype=torch.float64)")
        y = self.one("t(3, seed=1)", "x", "x[:]", "t(1, seed=1)", "t(3, 3, seed=1)")
        first = [
            x,
            y,
            self.one("2", "3", "0"),
            self.one("[3, 1, 2]", "[5]", "[]"),
            self.one("{'a': 1, 'b': 2}", "{}"),
            self.one("Box(2, [1, 2])", "Crate(1, [4])"),
        ]
        second = list(first)
        which = self.draw(st.integers(0, 5))
        second[which] = (
            self.one("t(4)", "t(3, seed=5)", "t(2, 2)", "t(3, dtype=torch.int64)"),
            self.one("x", "t(3, seed=9)", "t(2)", "x.view(-1)"),
            self.one("4", "-1", "2.5", "True", "None"),
            self.one("[3, 1, 4]", "[7, 7]", "(1, 2)", "[1.5]"),
            self.one("{'b': 5}", "{'a': 1, 'b': 3}", "{'b': 2, 'a': 1}"),
            self.one("Box(3, [1, 2])", "Crate(2, [4])", "Box(2)", "Box(2.5, [1])"),
        )[which]
        rows = []
        for index, values in enumerate((first, second)):
            rows += [f"def arguments_{index}():", f"    x = {values[0]}", f"    return (x, {', '.join(values[1:])})", ""]
        return rows


def whole_text(program: str) -> str:
    return PRELUDE + MORE + "\n\n" + program
