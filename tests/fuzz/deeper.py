"""Statements of random programs that look like model code: inheritance with super, managers that swallow, nested closures, generators that
are driven through others, exits through `finally`, aliased containers and tensors, parameters and buffers that change, modes inside modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from programs import ERRORS
from wider import WideWriter

SHAPES = ("Shape", "Round", "Loud", "Both")


class DeepWriter(WideWriter):
    more_plain = (*WideWriter.more_plain, "slice_write", "aliases", "shape_", "forwarded", "text", "data_", "parameter", "early", "counter")
    more_blocks = (*WideWriter.more_blocks, "swallowed", "nested", "exits", "piped", "modes", "inherited", "loop_write", "data_match", "gradients")

    def take(self, kind: str, value: str) -> str:
        target = self.fresh()
        self.say(f"{target} = {value}")
        self.bind(kind, target)
        return target

    def tensor_name(self) -> str:
        return self.name("tensor") or "x"

    # ---- tensors -------------------------------------------------------------------------------------------------------

    def slice_write(self) -> None:
        a, b = self.tensor_name(), self.tensor_name()
        e = self.expr
        self.say(
            self.one(
                f"{a}[1:] = {a}[:-1]",
                f"{a}[1:] = {a}[:-1].clone()",
                f"{a}[..., :2] = {b}[..., 1:3]",
                f"{a}[[0, 1]] = {a}[[1, 0]]",
                f"{a}[0], {a}[1] = {a}[1], {a}[0]",
                f"{a}[0], {a}[-1] = {a}[-1].clone(), {a}[0].clone()",
                f"{a}.masked_fill_({a} > {e('float')}, {e('int')})",
                f"{a}[{e('int')} % 3] += {b}.sum()",
                f"{a}.index_fill_(0, torch.tensor([0]), {e('float')})",
                f"{a}.{self.one('t()', 'flip(0)', 'view(-1)', 'mT')}[0] -= 1",
                f"{a}.scatter_(-1, torch.tensor([0, 2]), {e('float')})",
                f"torch.{self.one('add', 'sub', 'mul')}({a}, {b}, out={self.one(a, b, f'{a}[:]')})",
                f"{a}.data = {b}.{self.one('data', 'detach().clone()')}",
                f"{a}.set_({b}.detach())",
                f"{a}.{self.one('unsqueeze_(0)', 'squeeze_()', 't_()', 'resize_(2)', 'transpose_(0, -1)')}",
                f"torch.nn.functional.{self.one('relu', 'dropout', 'hardtanh', 'leaky_relu')}({a}, inplace=True)",
                f"for part in {a}.{self.one('chunk(2)', 'split(1)', 'unbind()', 'split([1, 2])')}: part.mul_({e('float')})",
                f"{a}.lerp_({b}, 0.5).clamp_(min={e('int')})",
            )
        )

    def gradients(self) -> None:
        a = self.tensor_name()
        e = self.expr
        form = self.draw(st.integers(0, 3))
        if form == 0:
            leaf = self.take("tensor", f"{a}.detach().clone(){self.one('.requires_grad_()', '', '.float().requires_grad_()')}")
            self.take("tensor", f"({leaf} * {e(self.one('float', 'tensor'))}).sum()")
            self.take("tensor", f"torch.autograd.grad({self.name('tensor')}, {leaf}{self.one('', ', allow_unused=True')})[0]")
        elif form == 1:
            self.say(f"({a} * DEEP.gain{self.one('', '.sin()')}).sum().backward()")
            self.say(self.one("DEEP.gain.data.sub_(DEEP.gain.grad)", "DEEP.gain.grad = None", "DEEP.zero_grad()", f"GLIST.append({a}.grad is None)"))
        elif form == 2:
            self.say("with torch.no_grad():")
            self.inside(self.one(f"{a}.requires_grad_().add_(1)", f"DEEP.gain -= {a}", "DEEP.gain.mul_(0.5)", f"{a}.grad = {a}.clone()"))
        else:
            self.say(f"GLIST.append(({a}.requires_grad, {a}.is_leaf, {a}.grad_fn is None, {a}._version))")

    def aliases(self) -> None:
        """Two names of one container or tensor, and a write through one."""
        e = self.expr
        form = self.draw(st.integers(0, 5))
        if form == 0:
            a, b = self.name("list") or "items", self.fresh()
            self.say(f"{b} = {self.one(f'[{a}, {a}]', f'({a}, {a})', f'[{a}] * 2')}")
            write = self.one(f".append({e('int')})", f"[:0] = {e('list')}", f".extend({b}[1])", ".clear()", f".append({b})")
            self.say(f"{b}[0]{write}")
            self.bind("live", b)
        elif form == 1:
            a, b = self.name("dict") or "d", self.fresh()
            self.say(f"{b} = {a}")
            self.say(
                self.one(f"{b}.update({e('dict')})", f"{b}['self'] = {a}", f"{b} |= {e('dict')}", f"{b}.setdefault('l', []).append({a}.get('l'))")
            )
            self.say(
                self.one(
                    f"{a}.pop('self', None)", f"for key in {a}: {b}[key] = 0", f"for key in list({a}): del {b}[key]", f"for key in {a}: {b}.pop(key)"
                )
            )
            self.bind("live", b)
        elif form == 2:
            a = self.name("list") or "items"
            b = self.take("live", f"collections.deque([{a}, {self.tensor_name()}], maxlen={self.one(2, 3)})")
            self.say(self.one(f"{b}.append({a})", f"{b}[0].append({e('int')})", f"{b}.rotate()", f"{b}[-1].add_(1)", f"{b}.extend([{b}[0], 1])"))
            self.say(self.one(f"{a}.append(len({b}))", f"GLIST.append({b}[0] is {a})", f"{b}.remove({a})", f"{a}[:] = {b}[0]"))
        elif form == 3:
            a = self.tensor_name()
            b = self.take("live", f"{{'one': {a}, 'two': {self.tensor_name()}, 'view': {a}[:1]}}")
            self.say(f"{b}[{self.one(repr('one'), repr('two'), repr('view'))}]{self.one('.add_(1)', '.mul_(2)', ' += 1', '[...] = 0')}")
            self.say(f"GLIST.append([{b}['one'] is v for v in {b}.values()])")
        elif form == 4:
            a = self.name("set") or "{1, 2}"
            b = self.take("set", a)
            self.say(
                self.one(f"{b} |= {e('set')}", f"{b}.add({e('int')})", f"{b}.discard({e('int')})", f"for q in {b}: {b}.add(q + 9)", f"{b} -= {b}")
            )
        else:
            a = self.name("box") or "o"
            self.say(
                self.one(f"{a}.items = {a}.items", f"{a}.other = {a}", f"{a}.items += {a}.items[:1]", f"{a}.items, {a}.value = [1], len({a}.items)")
            )
            self.take("live", self.one(f"copy.copy({a})", f"copy.deepcopy({a}.items)", f"[{a}, {a}.items]", f"vars({a})", f"sorted(vars({a}))"))

    def loop_write(self) -> None:
        """A loop that writes to a tensor of its own or of the caller, with state that travels through its turns."""
        a, state = self.tensor_name(), self.fresh()
        self.say(f"{state} = {self.one(f'torch.zeros_like({a})', 'None', f'{a}[:]', '[]')}")
        self.say(f"for step in range({self.one(3, 2)}):")
        self.depth += 1
        self.say(
            self.one(
                f"{a}[step:] += step",
                f"{state} = {a} * step if {state} is None else {state} + {a}",
                f"{state}[step] = {a}.sum() if step else 0",
                f"{state}.append({a}.add_(step))",
                f"{a}[step % {a}.shape[0]], {state} = step, {a}",
            )
        )
        self.scope.names.setdefault("int", []).append("step")
        self.block(2, self.scope.inside(loop=True))
        self.depth -= 1
        self.bind("live", state)

    # ---- modules and modes ---------------------------------------------------------------------------------------------

    def parameter(self) -> None:
        e = self.expr
        if self.chance(50):
            self.take("tensor", f"DEEP({self.one('x', e('tensor'))}{self.one('', ', residual=False')})")
            return
        self.say(
            self.one(
                "DEEP.steps.add_(2)",
                "DEEP.mean += DEEP.gain.detach()",
                f"DEEP.mean = torch.ones(3) * {e('int')}",
                f"DEEP.gain.data.fill_({e('float')})",
                f"DEEP.gain = torch.nn.Parameter(torch.ones(3) * {e('int')})",
                "DEEP.layers[0].weight.requires_grad_(False)",
                "DEEP.layers.append(torch.nn.Identity())",
                "DEEP.layers[0], DEEP.layers[-1] = DEEP.layers[-1], DEEP.layers[0]",
                "DEEP.layers[1] = DEEP.layers[0]",
                "del DEEP.layers[-1]",
                f"DEEP.table[{self.key()}] = {e('tensor')}",
                f"DEEP.register_buffer('extra{self.one('', '2')}', {e('tensor')}.detach(), persistent=False)",
                "DEEP.mean = None",
                "DEEP.load_state_dict({k: v * 2 for k, v in DEEP.state_dict().items()})",
                "GLIST.append([name for name, _ in DEEP.named_parameters()])",
                "GLIST.append(sum(p.numel() for p in DEEP.parameters() if p.requires_grad))",
                "DEEP.apply(lambda m: setattr(m, 'visited', True))",
                "DEEP.gain.note = len(list(DEEP.buffers()))",
                f"DEEP.{self.one('eval', 'train', 'float', 'requires_grad_')}()",
                "DEEP.step_count = getattr(DEEP, 'step_count', 0) + 1",
                "DEEP.steps = DEEP.steps + 1",
            )
        )

    def modes(self) -> None:
        outer, inner = (
            self.one("no_grad()", "enable_grad()", "set_grad_enabled(n > 1)", "inference_mode(False)", "autograd.set_detect_anomaly(False)")
            for _ in range(2)
        )
        log = "GLIST.append(torch.is_grad_enabled())"
        self.say(f"with torch.{outer}:")
        self.depth += 1
        self.say(
            self.one(
                "pass",
                log,
                "torch.set_grad_enabled(True)",
                self.one("try:\n" + "    " * (self.depth + 1) + "pass\n" + "    " * self.depth + "finally: pass"),
            )
        )
        self.say(self.one(f"with torch.{inner}:", f"with torch.{inner}, Swallow(ValueError, IndexError) as sw:"))
        self.block(2)
        self.inside(
            self.one(log, "cdynamo.graph_break()", "torch.set_grad_enabled(False)", f"GLIST.append(frozen({self.tensor_name()}).requires_grad)")
        )
        self.say(log)
        self.depth -= 1
        self.say(self.one(log, "torch.set_grad_enabled(True)"))
        if self.chance(50):
            self.take("tensor", f"{self.one('frozen', 'torch.no_grad()(torch.sin)', 'torch.enable_grad()(lambda q: q * 2)')}({self.expr('tensor')})")

    # ---- classes -------------------------------------------------------------------------------------------------------

    def shape_(self) -> None:
        e = self.expr
        name = self.name("shape")
        if name is None or self.chance(30):
            kind = self.one(*SHAPES)
            more = self.one("", f", tag={e('str')}", f", size={e('int')}")
            volume = ", volume=2" if kind in ("Loud", "Both") and self.chance(50) else ""
            name = self.take("shape", self.one(f"{kind}({e('int')}{volume}{more})", f"{kind}.unit()"))
        form = self.draw(st.integers(0, 5))
        if form == 0:
            self.take("tensor", f"{name}.area({e('tensor')})")
        elif form == 1:
            self.say(self.one(f"{name}.size = {e('int')}", f"{name}.size += 1", f"del {name}.size", f"{name}.n -= 1"))
        elif form == 2:
            self.take(
                "int",
                self.one(f"{name}.size", f"{name}.once", f"{name}.hidden", f"type({name}).made", f"len({name}.log)", f"getattr({name}, 'volume', 4)"),
            )
        elif form == 3:
            self.take("tensor", f"super({self.one(*SHAPES)}, {name}).area({e('tensor')})")
        elif form == 4:
            self.say(
                self.one(
                    f"{name}.area = lambda q: q",
                    f"{name}.__class__ = {self.one(*SHAPES)}",
                    f"vars({name}).pop('once', None)",
                    f"{name}.log = {name}.log[:1]",
                )
            )
        else:
            self.say(f"GLIST.append(({name}.log[-2:], type({name}).__mro__[1].__name__, isinstance({name}, Loud), hasattr({name}, 'hidden')))")

    def inherited(self) -> None:
        """A class of the function's own below the prelude's, whose methods call what they override."""
        name, base = self.fresh("S"), self.one(*SHAPES, "Round, Loud")
        self.say(f"class {name}({base}):")
        self.depth += 1
        for _ in range(self.draw(st.integers(1, 3))):
            match self.draw(st.integers(0, 6)):
                case 0:
                    self.say("def __init__(self, n, *rest, **more):")
                    self.inside("super().__init__(n, **more)", f"self.rest = rest or {self.expr('int')}")
                case 1:
                    self.say("def area(self, x):")
                    self.inside(f"return super().area(x{self.one('', ' + 1', '.add_(1)')}) {self.one('+', '*')} {self.expr('int')}")
                case 2:
                    self.say("@property")
                    self.say("def size(self):")
                    self.inside(f"return super().size + {self.expr('int')}")
                case 3:
                    self.say("@classmethod")
                    self.say("def unit(cls):")
                    self.inside("made = super().unit()", f"made.n = {self.expr('int')}", "return made")
                case 4:
                    self.say("def __setattr__(self, name, value):")
                    self.inside("super().__setattr__(name, value)", "GLIST.append(name)")
                case 5:
                    self.say("def __getattr__(self, name):")
                    self.inside("GLIST.append('get ' + name)", f"return super().__getattribute__({self.one('name', repr('n'))})")
                case _:
                    self.say("def __del__(self):")
                    self.inside("GLIST.append('gone')")
        self.depth -= 1
        target = self.take("shape", self.one(f"{name}({self.expr('int')})", f"{name}.unit()", f"{name}({self.expr('int')}, tag={self.expr('int')})"))
        self.take("tensor", f"{target}.area({self.expr('tensor')})")
        self.take("int", self.one(f"{target}.size", f"{target}.hidden", f"len({target}.log)", f"{target}.tag", f"{name}.made"))

    def data_(self) -> None:
        e = self.expr
        name = self.name("point")
        if name is None or self.chance(30):
            name = self.take("point", self.one(f"Point({e('int')})", f"Point({e('int')}, items={e('list')})", f"Point(b={e('float')}, a={e('int')})"))
        form = self.draw(st.integers(0, 6))
        if form == 0:
            self.say(
                self.one(f"{name}.a += {e('int')}", f"{name}.items.append({e('int')})", f"{name}.b = {e('tensor')}", f"{name}.more = {e('int')}")
            )
        elif form == 1:
            self.take(
                "point",
                self.one(
                    f"{name}.moved({e('int')})",
                    f"dataclasses.replace({name}, b={e('float')})",
                    f"copy.copy({name})",
                    f"Point(*dataclasses.astuple({name}))",
                ),
            )
        elif form == 2:
            self.take(
                "bool",
                self.one(
                    f"({name} == Point({e('int')}))",
                    f"({name} is {name})",
                    f"(Pair({e('int')}) < Pair({e('int')}, 2))",
                    "(Pair(1) in {Pair(1, 0): 2})",
                ),
            )
        elif form == 3:
            self.take(
                "int",
                self.one(
                    f"{name}.a",
                    f"len({name}.items)",
                    f"Pair({e('int')}, {e('int')}).both",
                    f"Named({e('int')}).b",
                    f"Named(1, {e('int')})._replace(a=4)[0]",
                ),
            )
        elif form == 4:
            self.take(
                "str",
                self.one(
                    f"repr({name})",
                    f"str(Pair({e('int')}))",
                    f"repr(Named({e('int')}))",
                    "str(Color.RED)",
                    f"Color({e('int')}).name",
                    "repr(dataclasses.fields(Pair)[0].name)",
                ),
            )
        elif form == 5:
            self.take(
                "dict",
                self.one(f"dataclasses.asdict({name})", f"vars({name}).copy()", f"Named({e('int')})._asdict()", "{c.name: c.value for c in Color}"),
            )
        else:
            self.say(
                self.one(
                    f"Pair({e('int')}).a = 2", f"{name}.a, {name}.b = {name}.b, {name}.a", f"del {name}.b", f"object.__setattr__({name}, 'a', 5)"
                )
            )

    def data_match(self) -> None:
        e = self.expr
        subject = self.one(
            self.name("point") or f"Point({e('int')})",
            f"Pair({e('int')}, {e('int')})",
            f"Named({e('int')})",
            f"[{e('int')}, {e('str')}]",
            f"{{'a': {e('list')}}}",
            self.name("shape") or "o",
        )
        self.say(f"match {subject}:")
        a, b = self.fresh(), self.fresh()
        patterns: list[tuple[str, str | None]] = [
            (f"Point({a}, 0.5)", "int"),
            (f"Point(a=1 | 2 as {a}, items=[*_, {b}])", "int"),
            (f"Pair({a}, {b}) if {a} > {b}", "int"),
            (f"Pair(b=0) as {a}", "live"),
            (f"Named({a}, {b})", "int"),
            (f"({a}, 3)", "int"),
            (f"[int({a}), str({b})]", "int"),
            (f"{{'a': [{a}, *{b}]}}", "int"),
            (f"Shape(size={a}) | Box(value={a})", "int"),
            (f"{{'a': {a}, **{b}}}", "list"),
        ]
        start = self.draw(st.integers(0, len(patterns) - 1))
        self.cases((patterns[start:] + patterns[:start])[: self.draw(st.integers(2, 4))], a)

    # ---- functions -----------------------------------------------------------------------------------------------------

    def forwarded(self) -> None:
        e = self.expr
        fn = self.one(
            "varied",
            "failing",
            "noted(varied)",
            "functools.partial(varied, 1)",
            "bump",
            f"functools.partial(functools.partial(varied, c={e('int')}), {e('int')})",
            "kept",
            "Box.clamp",
        )
        args = self.one(
            e("int"),
            f"{e('int')}, {e('int')}",
            f"*{e('list')}",
            f"*{e('tuple')}, **{e('dict')}",
            f"{e('int')}, *{e('list')}, **{{'c': {e('int')}}}",
            "",
            f"{e('int')}, b={e('int')}",
        )
        self.take(
            "int",
            self.one(
                f"forward_all({fn}{', ' if args else ''}{args})",
                f"forward_all(forward_all, {fn}{', ' if args else ''}{args})",
                f"{fn}({args})",
                f"(lambda *a, **k: {fn}(*a, **k))({args})",
            ),
        )

    def counter(self) -> None:
        self.say(
            self.one(
                "bump()",
                "GLIST.append(G)",
                f"bump({self.expr('int')})",
                f"kept({self.expr('int')})",
                "GDICT['calls'] = GDICT.get('calls', 0) + 1",
                "GDICT.setdefault('log', []).append(G)",
                "Shape.made += 1",
                "Box.kind = Box.kind + '!'",
            )
        )

    def nested(self) -> None:
        """Closures inside closures that write to the variables of those around them."""
        made, a, b = self.fresh("mk"), self.fresh("one"), self.fresh("two")
        e = self.expr
        total = self.fresh("tot")
        self.say(f"def {made}(start):")
        self.depth += 1
        self.say(f"{total}, log = start, []")
        self.say("def add(by=1):")
        self.depth += 1
        self.say(f"nonlocal {total}{self.one('', ', log')}")
        self.say(f"{total} += by")
        self.say("def note():")
        self.depth += 1
        self.say(f"nonlocal {total}")
        self.say(
            self.one(
                f"log.append({total})", f"{total} *= 2", f"log.append(x.add_({total}))", f"del {total}", f"cdynamo.graph_break(); log.append({total})"
            )
        )
        self.say(self.one("return note", f"return {total}", "return log"))
        self.depth -= 1
        self.say(
            self.one(
                "note()",
                "log.append(note())",
                f"if by > {e('int')}: note()",
                f"{total} -= 1",
                "try: note()\n" + "    " * self.depth + "finally: log.append(0)",
            )
        )
        self.say(self.one(f"return {total}", f"return {total}, log"))
        self.depth -= 1
        self.say(self.one(f"return add, lambda: {total}", f"return add, lambda: ({total}, log)", f"return add, (lambda v: [add(v), {total}])"))
        self.depth -= 1
        self.say(f"{a}, {b} = {made}({e('int')})")
        for _ in range(self.draw(st.integers(1, 3))):
            self.say(
                self.one(
                    f"GLIST.append({a}({self.one('', e('int'))}))",
                    f"GLIST.append({b}({self.one('', e('int'))}))",
                    f"[{a}(q) for q in {e('list')}[:2]]",
                )
            )
        self.bind("live", a)
        self.bind("live", b)

    def exits(self) -> None:
        """A function that is left out of loops, `try` and `with`, by any way."""
        name = self.fresh("g")
        e = self.expr
        self.say(f"def {name}(p, log):")
        self.depth += 1
        loop = self.one(
            f"for i in range({self.one(3, 'p')}):", f"for i in {self.one('items', e('list'))}[:4]:", "i = 3\n" + "    " * self.depth + "while i:"
        )
        self.say(loop)
        self.depth += 1
        if loop.endswith("while i:"):
            self.say("i -= 1")
        self.say(self.one("try:", "try:", "with Swallow(KeyError, Oops) as sw:", "with managed(log, True):"))
        block = self.lines[-1].strip()
        self.depth += 1
        self.say(
            self.one(
                f"if i == {e('int')}: return i",
                "log.append(failing(i))",
                f"if i > p: {self.one('break', 'continue')}",
                "log.append(x.sum().item())",
                "x.add_(i)",
                f"raise {self.one(*ERRORS)}(i)",
            )
        )
        self.say(self.one("return log, i", "continue", "break", "log.append(i)", "cdynamo.graph_break()", f"if p % 2: raise {self.one(*ERRORS)}"))
        self.depth -= 1
        if block == "try:":
            form = self.draw(st.integers(0, 3))
            if form:
                self.say(f"except {self.one('ValueError', 'Exception', '(KeyError, Oops)', 'LookupError')} as error:")
                self.inside(
                    self.one(
                        "log.append(error.args)",
                        "raise",
                        "return error",
                        "raise KeyError(p) from error",
                        "continue",
                        "log.append(repr(error.__context__))",
                    )
                )
            if form == 2:
                self.say("else:")
                self.inside(self.one("log.append('else')", "return 'else'", "break"))
            if form != 1:
                self.say("finally:")
                self.inside(
                    f"log.append({self.one(9, 'i')})",
                    self.one("pass", "return log", "continue", "break", "print('f')", "if i: return i", "cdynamo.graph_break()"),
                )
        self.depth -= 1
        if self.chance(40):
            self.say("else:")
            self.inside(self.one("log.append('all')", "return 'all'"))
        self.say("return p")
        self.depth -= 1
        self.bind("live", name)
        self.take(
            "live", self.one(f"{name}({e('int')}, GLIST)", f"[{name}(q, []) for q in (0, 2)]", f"{name}({e('int')}, {self.name('list') or 'items'})")
        )

    def piped(self) -> None:
        """A generator that is driven through another one."""
        live = self.fresh()
        e = self.expr
        source = self.one(
            f"running({e('int')})", "through(running())", f"through(counted({e('int')}))", "through(through(running()))", f"through({e('list')})"
        )
        self.say(f"{live} = {source}")
        for _ in range(self.draw(st.integers(1, 4))):
            step = self.one("send(None)", f"send({e('int')})", "throw(ValueError('in'))", "__next__()", "close()", "throw(KeyError)")
            text = f"GLIST.append({live}.{step})"
            form = self.draw(st.integers(0, 3))
            if form == 0:
                self.say("try:")
                self.inside(text)
                self.say(f"except {self.one('StopIteration', '(StopIteration, TypeError)', 'Exception')} as stop:")
                self.inside(f"GLIST.append({self.one('stop.args', 'repr(stop)', 'type(stop.__context__).__name__')})")
            elif form == 1:
                self.say(f"for {self.fresh('i')} in itertools.islice({live}, 2): {self.one('pass', f'GLIST.append(i{self.count})', 'break')}")
            else:
                self.say(text)
        self.bind("live", live)

    def swallowed(self) -> None:
        """A block whose error a manager swallows, and what is written before it."""
        name = self.fresh("sw")
        e = self.expr
        first = self.one(
            f"Swallow({self.one(*ERRORS)}, {self.one(*ERRORS)})",
            "Swallow(Exception)",
            f"Adds({self.tensor_name()}{self.one('', ', fail=True')})",
            "contextlib.suppress(Exception)",
        )
        self.say(f"with {self.one('', 'Swallow(KeyError) as outer, ')}{first} as {name}:")
        before = self.scope
        inside = self.scope.inside()
        self.block(3, inside)
        self.scope = inside
        self.inside(
            self.one(
                f"raise {self.one(*ERRORS)}({e('int')})",
                f"failing({e('int')})",
                f"{self.tensor_name()}.add_(1); raise Oops('late')",
                f"[][{e('int')}]",
                "x.view(7)",
                "cdynamo.graph_break()",
                f"x @ {self.tensor_name()}",
            )
        )
        self.scope = before
        if first.startswith("Swallow"):
            self.say(f"GLIST.append({name}.seen)")
        self.bind("live", name)

    # ---- texts and breaks ----------------------------------------------------------------------------------------------

    def text(self) -> None:
        e = self.expr
        a, i = self.tensor_name(), self.name("int") or "n"
        self.take(
            "str",
            self.one(
                f"f'{{{i}:>{{{e('int')}}}}} {{{a}.shape}}'",
                f"f'{{{i}!r:*^7}}|{{{a}.dtype}}|{{{i}:+}}'",
                f"'{{0.value}} {{0.kind!r}} {{1[0]}}'.format({self.name('box') or 'o'}, {e('list')})",
                f"'%(a)s %(b)05d' % {{'a': {e('list')}, 'b': {e('int')}}}",
                f"f'{{{a}.sum().item():.3f}}'",
                f"f'{{{e('float')}:8.2f}}'",
                f"str({a}.tolist())",
                f"repr({a}.detach())",
                f"f'{{{a}}}'[:12]",
                f"'{{:,}}'.format({e('int')} * 1000)",
                f"format({e('float')}, '.1%')",
                f"f'{{{e('bool')}}}{{{e('list')}!s:>12}}'",
                f"str({a}.size())",
                f"f'{{{a}.mean():.2f}}'",
                f"','.join(map(str, {e('list')}))",
                f"{e('str')}.replace('s', str({e('int')}))",
                f"{e('str')}.join({e('str')}.partition(' '))",
                f"ascii({e('str')}).encode().decode()",
            ),
        )

    def early(self) -> None:
        a = self.tensor_name()
        self.say(
            self.one(
                f"print({a}.sum().item())",
                f"print('at', {self.expr('list')}, {a}.shape, end=';')",
                f"GLIST.append({a}.tolist())",
                f"GLIST.append(int({a}.detach().sum()))",
                f"print({a})",
                f"GLIST.append(float({a}.detach().max()) > {self.expr('float')})",
                f"GLIST.append({a}.numpy().sum())",
                f"if {a}.sum(): GLIST.append('true')",
                f"assert {a}.sum() == {a}.sum(), {self.expr('str')}",
                f"GLIST.append(bool(({a} > {self.expr('float')}).all()))",
                f"while {a}.sum() > 100: {a}.zero_()",
                f"GLIST.append(torch.equal({a}, {self.tensor_name()}))",
                f"GLIST.append({self.expr('list')}[int({a}.detach().sum()) % 2:])",
                f"GLIST.append(len({a}.nonzero()))",
            )
        )


@st.composite
def programs(draw: Callable[[Any], Any]) -> str:
    writer = DeepWriter(draw)
    writer.function()
    return "\n".join([*writer.lines, "", "", *writer.arguments(), *writer.change()])
