"""Decode and assemble: the standard library comes back in the same normal form, and behaves the same."""

import os
import pathlib
import subprocess
import sys
import types
import warnings

import pytest

LIB = pathlib.Path(os.__file__).parent
FOLDERS = ["json", "asyncio", "unittest", "email", "importlib", "concurrent", "collections", "ctypes", "xml", "test"]
# Of Lib/test, the files that are rich in unusual syntax.
SYNTAX_TESTS = [
    "test_patma.py",
    "test_grammar.py",
    "test_except_star.py",
    "test_coroutines.py",
    "test_asyncgen.py",
    "test_generators.py",
    "test_descr.py",
    "test_named_expressions.py",
    "test_type_params.py",
    "test_with.py",
    "test_listcomps.py",
    "test_contextlib_async.py",
    "test_fstring.py",
    "test_unittest/testmock/testasync.py",
]


def code_objects(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from code_objects(const)


def sources(folder):
    if folder == "test":
        return [LIB / "test" / name for name in SYNTAX_TESTS if (LIB / "test" / name).exists()]
    if folder == ".":
        return sorted(LIB.glob("*.py"))
    return sorted(p for p in (LIB / folder).rglob("*.py") if "test" not in p.relative_to(LIB).parts)


def compiled(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(path.read_bytes(), str(path), "exec")


@pytest.mark.parametrize("folder", [".", *FOLDERS])
def test_standard_library_keeps_its_normal_form(rooms, folder):
    if not sources(folder):
        pytest.skip("this Python was installed without its own tests")
    checked = 0
    for path in sources(folder):
        for code in code_objects(compiled(path)):
            where = f"{path.name}:{code.co_firstlineno} {code.co_qualname}"
            before = rooms.decode(code)
            rooms.verify(code)
            again = rooms.reassemble(code)
            rooms.verify(again)
            assert rooms.decode(again) == before, where
            for field in (
                "co_argcount",
                "co_posonlyargcount",
                "co_kwonlyargcount",
                "co_flags",
                "co_varnames",
                "co_cellvars",
                "co_freevars",
                "co_name",
                "co_qualname",
                "co_filename",
                "co_firstlineno",
                "co_nlocals",
            ):
                assert getattr(again, field) == getattr(code, field), (where, field)
            checked += 1
        rooms.clear_decode_cache()
    assert checked > 10


def test_positions_are_cpythons(rooms):
    for path in [LIB / "typing.py", LIB / "dataclasses.py"]:
        for code in code_objects(compiled(path)):
            known = set(code.co_positions())
            for _, _, _, _, _, pos, _, _ in rooms.decode(code)[0]:
                line, end_line, col, end_col = (None if part == -1 else part for part in pos)
                assert (line, end_line, col, end_col) in known


def test_line_starts_survive(rooms):
    for code in code_objects(compiled(LIB / "textwrap.py")):
        lines = [line for *_, line in code.co_lines()]
        again = [line for *_, line in rooms.reassemble(code).co_lines()]
        squeeze = [line for i, line in enumerate(lines) if i == 0 or lines[i - 1] != line]
        assert [line for i, line in enumerate(again) if i == 0 or again[i - 1] != line] == squeeze


BEHAVIOUR = [
    "json",
    "generators",
    "coroutines",
    "contextlib",
    "contextlib_async",
    "dataclasses",
    "textwrap",
    "heapq",
    "fractions",
    "patma",
    "except_star",
    "exceptions",
    "with",
    "grammar",
    "listcomps",
    "scope",
    "super",
    "unpack_ex",
    "extcall",
    "asyncgen",
    "raise",
    "fstring",
    "decorators",
    "traceback",
    "sys_settrace",
    "difflib",
    "named_expressions",
    "class",
    "descr",
    "keywordonlyarg",
    "exception_variations",
    "yield_from",
    "genexps",
    "setcomps",
    "dictcomps",
    "call",
    "functools",
    "typing",
    "enum",
    "inspect",
    "type_params",
    "type_aliases",
]


def test_cpythons_own_tests_pass_on_reassembled_code():
    names = ["test.test_" + name for name in BEHAVIOUR if (LIB / "test" / f"test_{name}.py").exists() or (LIB / "test" / f"test_{name}").exists()]
    if not names:
        pytest.skip("this Python was installed without its own tests")
    here = pathlib.Path(__file__).parent
    done = subprocess.run([sys.executable, str(here / "reassembled.py"), *names], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    made, ran = (int(word) for word in done.stdout.split("\n")[-2].split() if word.isdigit())
    assert made > 10_000 and ran > 3_000
