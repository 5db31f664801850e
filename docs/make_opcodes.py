"""Writes docs/opcodes.md: every opcode of each supported Python, the handler of the instruction it becomes, and a test that has it in its
code. Run it with each Python (it needs neither torch nor the extension); a run replaces the part of its own version."""

from __future__ import annotations

import dis
import pathlib
import re
import sys
import types
import warnings
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "opcodes.md"
VERSION = "{}.{}".format(*sys.version_info)

HEAD = """# Opcodes

Every code object is decoded to one instruction set (`csrc/bytecode/ops.def`); each of its instructions has one handler, and a missing one does
not link. This page says for each opcode of CPython which instruction it becomes, where the handler is, and one test of the differential oracle
(`tests/differential/`) whose code has the opcode. Opcodes without an instruction are part of another one. The instructions without a test cannot be
in the code of a function: a module's own code and the interactive prompt are never captured.

This page is made by `docs/make_opcodes.py`.
"""

# Where nothing is to be handled: the decoder takes them in.
DECODED = {
    "CACHE": "inline cache",
    "EXTENDED_ARG": "part of the next argument",
    "PRECALL": "part of CALL",
    "PUSH_NULL": "part of CALL",
    "KW_NAMES": "part of CALL",
    "END_FOR": "part of FOR_ITER",
    "RESERVED": "unused",
    "INTERPRETER_EXIT": "the interpreter's own",
}


# Tests that execute the opcode, where the first one that has it does not.
PREFERRED = {
    "CLEANUP_THROW": "lang_exceptions.thrown_into_generators",
    "CONTAINS_OP": "lang_syntax.globals_and_locals_functions",
    "JUMP_BACKWARD": "lang_async.wrong_awaits",
    "JUMP_BACKWARD_NO_INTERRUPT": "lang_async.async_for",
    "LIST_TO_TUPLE": "lang_functions.star_calls",
    "LOAD_SUPER_ATTR": "class_creation.local_class_hierarchy",
    "RERAISE": "lang_exceptions.handlers_nested_in_handlers",
    "CALL_INTRINSIC_1(3)": "lang_exceptions.crossing_generators",
    "CALL_INTRINSIC_1(6)": "lang_functions.star_calls",
    "STORE_NAME": "lang_syntax.class_body_names",
    "YIELD_VALUE": "lang_async.coroutine_methods",
    "LOAD_ASSERTION_ERROR": "lang_syntax.failing_assert_on_tensor_value",
    "POP_JUMP_FORWARD_IF_TRUE": "lang_syntax.failing_assert_on_tensor_value",
}


def rows(path: str, macro: str) -> list[tuple[str, ...]]:
    """The ROW(...)s of a macro of a table."""
    text = (ROOT / "csrc" / "cpython" / path).read_text()
    body = re.search(rf"#define {macro}\(ROW\)(.*?)(?:\n\n|\n#|\Z)", text, re.DOTALL)
    return [tuple(part.strip() for part in row.split(",")) for row in re.findall(r"ROW\(([^)]*)\)", body.group(1) if body else "")]


def instructions() -> dict[str, str]:
    """Opcode -> name of the instruction; intrinsics are NAME(number)."""
    table = f"opcodes_{VERSION.replace('.', '')}.h"
    found = {opcode: op for opcode, op, *_ in rows("opcodes_common.h", "CD_COMMON_OPCODE_ROWS") + rows(table, "CD_OPCODE_ROWS")}
    for number in (1, 2):
        for intrinsic, op, *_ in rows(table, f"CD_INTRINSIC{number}_ROWS"):
            found[f"CALL_INTRINSIC_{number}({intrinsic})"] = op
    return found


def handlers() -> dict[str, str]:
    """Instruction -> the file of its handler."""
    found = {}
    for path in sorted((ROOT / "csrc" / "interp").glob("*.cpp")):
        text = path.read_text()
        for op in re.findall(r"^void handle(\w+)\(", text, re.MULTILINE) + re.findall(r"^CD_REFUSED\((\w+),", text, re.MULTILINE):
            found[op] = path.name
    return found


def refused() -> set[str]:
    """Instructions whose handler only says that it breaks."""
    return {op for path in (ROOT / "csrc" / "interp").glob("*.cpp") for op in re.findall(r"^CD_REFUSED\((\w+), ", path.read_text(), re.MULTILINE)} - {
        "name"
    }


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes_in(const)
        # Syntax that older Pythons do not have stands in strings.
        if isinstance(const, str) and (needed := re.match(r"# Python 3\.(\d+)\n", const)) and sys.version_info >= (3, int(needed.group(1))):
            yield from codes_in(compile(const, "<string>", "exec"))


def opcodes_of(code: types.CodeType) -> set[str]:
    found = set()
    for inner in codes_in(code):
        for instruction in dis.get_instructions(inner):
            found.add(instruction.opname)
            if instruction.opname.startswith("CALL_INTRINSIC"):
                found.add(f"{instruction.opname}({instruction.arg})")
    return found


def tests() -> dict[str, str]:
    """Opcode -> the first case of the differential oracle with it; those about the language come first."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests" / "differential").glob("test_*.py"), key=lambda path: ("test_lang" not in path.name, path.name)):
        source = path.read_text()
        names = set(re.findall(r"^ *@(?:case|scenario)\(.*\n(?: *@.*\n)* *def (\w+)", source, re.MULTILINE))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = compile(source, path.name, "exec")
        for const in module.co_consts:
            if isinstance(const, types.CodeType) and const.co_name in names:
                test = f"{path.stem.removeprefix('test_')}.{const.co_name}"
                for opcode in opcodes_of(const):
                    if PREFERRED.get(opcode, test) == test:
                        found.setdefault(opcode, test)
    return found


def opcodes() -> list[str]:
    """All that the compiler writes: no specialised or instrumented forms."""
    names = [name for name, number in sorted(dis.opmap.items()) if number < 256 and not name.startswith("INSTRUMENTED")]
    return names + sorted(name for name in instructions() if "(" in name)


def part() -> str:
    ops, files, known, says_no = instructions(), handlers(), tests(), refused()
    lines = [f"## Python {VERSION}\n", "| opcode | instruction | handler | test |", "|---|---|---|---|"]
    for opcode in opcodes():
        op = ops.get(opcode, "")
        test = known.get(opcode, "")
        if opcode in DECODED:
            lines.append(f"| `{opcode}` | {DECODED[opcode]} | | {test} |")
        elif op == "Nop" and opcode != "NOP":
            lines.append(f"| `{opcode}` | by its argument | | {test} |")
        else:
            how = " (a break)" if op in says_no else ""
            lines.append(f"| `{opcode}` | {op} | {files.get(op, '')}{how} | {test} |")
    return "\n".join(lines) + "\n"


def page(old: str) -> str:
    """The page with this version's part made anew."""
    parts = {title: f"## {title}" + body for title, body in re.findall(r"^## (Python \S+)$(.*?)(?=^## |\Z)", old, re.MULTILINE | re.DOTALL)}
    parts[f"Python {VERSION}"] = part()
    return HEAD + "\n" + "\n".join(parts[title].rstrip("\n") + "\n" for title in sorted(parts))


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text() if PAGE.exists() else ""))
