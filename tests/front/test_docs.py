"""README, pages, examples and type stubs say what is true."""

import ast
import dis
import importlib
import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch

import cdynamo
from cdynamo import _C
from cdynamo._config import _SETTINGS

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SKIPS = (ROOT / "docs" / "skips.md").read_text()
STUB = ast.parse((ROOT / "cdynamo" / "_C.pyi").read_text())


# ---- the stub of the extension -----------------------------------------------------------------------------------------


def members(cls):
    for node in cls.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def test_stub_names_what_the_extension_has():
    stated = {node.name for node in STUB.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert stated == {name for name in dir(_C) if not name.startswith("_")} - {"built_for"}
    for cls in STUB.body:
        if isinstance(cls, ast.ClassDef):
            there = getattr(_C, cls.name)
            stated = set(members(cls))
            assert all(hasattr(there, name) for name in stated), cls.name
            assert {name for name in vars(there) if not name.startswith("_")} <= stated, cls.name


def test_stub_of_configure():
    source = (ROOT / "csrc" / "dispatch" / "types.cpp").read_text()
    names = re.search(r"\* names\[\] = \{(.*?)nullptr", source, re.DOTALL).group(1)
    (stub,) = (node for node in STUB.body if isinstance(node, ast.FunctionDef) and node.name == "configure")
    assert [arg.arg for arg in stub.args.kwonlyargs] == re.findall(r'"(\w+)"', names)


@pytest.mark.parametrize("name", cdynamo.__all__)
def test_public_names_are_documented(name):
    assert getattr(cdynamo, name).__doc__


# ---- pages -------------------------------------------------------------------------------------------------------------


def test_page_of_skips_has_every_reason():
    source = (ROOT / "csrc" / "interp" / "capture.cpp").read_text()
    used = set(re.findall(r"\bskip\([^;]*?BreakReason::(\w+)", source))
    used |= set(re.findall(r"BreakReason::(\w+)", re.search(r"bool isFrameReason.*?\n  }", source, re.DOTALL).group()))
    ids = {row["reason"]: row["id"] for row in _C.break_reasons()}
    stated = re.findall(r"^\| \[(CD\d+)\]\(breaks.md#(cd\d+)\) `(\w+)`", SKIPS, re.MULTILINE)
    assert all(ids[name] == number and number.lower() == anchor for number, anchor, name in stated)
    assert {name for _, _, name in stated} == used | {"UncaughtException"}


def test_page_of_skips_has_every_package():
    source = (ROOT / "csrc" / "dispatch" / "frame_filter.cpp").read_text()
    listed = re.search(r"string_view>\{(.*?)\};", source, re.DOTALL).group(1)
    stated = re.search(r"<!-- packages -->(.*?)<!-- end -->", SKIPS, re.DOTALL).group(1)
    assert set(re.split(r",\s+", stated)) == {name.removesuffix(".py") for name in re.findall(r'"([^"]+)"', listed)}


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md", "docs/skips.md", "docs/opcodes.md"])
def test_links_and_files(page):
    """Links lead somewhere, and files that are named exist."""
    text = (ROOT / page).read_text()
    for link, anchor in re.findall(r"\]\(([\w./]+\.md|LICENSE)(#\w+)?\)", text):
        target = (ROOT / page).parent / link
        assert target.exists(), link
        assert not anchor or f"## {anchor[1:].upper()}\n" in target.read_text(), anchor
    sources = {str(path.relative_to(ROOT / "csrc")) for path in (ROOT / "csrc").rglob("*") if path.is_file()}
    for name in re.findall(r"`(?:csrc/)?((?:\w+/)?[a-z_0-9]+\.(?:cpp|h|c|def))`", text):
        assert any(path == name or path.endswith(f"/{name}") for path in sources), name


# ---- opcodes -----------------------------------------------------------------------------------------------------------

sys.path.insert(0, str(ROOT / "docs"))
import make_opcodes  # noqa: E402

# Of a module's own code and the interactive prompt.
NOT_IN_FUNCTIONS = {"IMPORT_STAR", "PRINT_EXPR", "CALL_INTRINSIC_1(1)", "CALL_INTRINSIC_1(2)"}


def opcode_rows():
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*?) \|$", make_opcodes.part(), re.MULTILINE)
    return [row for row in rows if row[0] not in make_opcodes.DECODED and row[1] != "by its argument"]


def test_page_of_opcodes_is_new():
    old = make_opcodes.PAGE.read_text()
    assert make_opcodes.page(old) == old, "run docs/make_opcodes.py"


def test_every_opcode_has_a_handler_and_a_test():
    for opcode, instruction, handler, test in opcode_rows():
        assert instruction and handler, opcode
        assert bool(test) != (opcode in NOT_IN_FUNCTIONS), opcode


def executed_opcodes(case):
    """The opcodes that the case's own code executes in eager mode."""
    names: dict = {}
    seen = set()

    def trace(frame, event, arg):
        code = frame.f_code
        if not code.co_filename.endswith(("_differential.py", "<string>")) and "differential" not in code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if code not in names:
            names[code] = {i.offset: (i.opname, i.arg) for i in dis.get_instructions(code)}
            # What comes before the first event.
            for name, _ in names[code].values():
                seen.add(name)
                if name == "RESUME":
                    break
        if event == "opcode":
            name, number = names[code].get(frame.f_lasti, ("", None))
            seen.update((name, f"{name}({number})"))
        return trace

    setup = case.build()
    try:
        given = setup.args()
        args, kwargs = given if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict) else (given, {})
        before = sys.gettrace()
        sys._getframe().f_trace_opcodes = True  # CPython 3.12 asks for it when the tracer is set
        sys.settrace(trace)
        try:
            setup.after(setup.fn(*args, **kwargs))
        except Exception:
            pass
        finally:
            sys.settrace(before)
    finally:
        setup.cleanup()
        torch.set_grad_enabled(True)
    return seen


def test_tests_of_the_opcodes_execute_them(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "differential"))
    known: dict = {}
    for opcode, _, _, test in opcode_rows():
        if not test:
            continue
        if test not in known:
            topic, name = test.split(".")
            (case,) = (case for case in importlib.import_module(f"test_{topic}").cases.cases if case.name == name)
            known[test] = executed_opcodes(case)
        assert opcode in known[test], (opcode, test)


def test_own_settings_are_in_the_readme():
    own = {name for name, (_, shared) in _SETTINGS.items() if not shared}
    assert own == set(re.findall(r"^\| `config\.(\w+)`", README, re.MULTILINE))


# ---- examples ----------------------------------------------------------------------------------------------------------


def plain(text):
    """Without what differs from run to run."""
    text = text.replace(f"{ROOT}{os.sep}", "")
    text = re.sub(r"\d+\.\d ms", "<time>", text)
    return re.sub(r"(_id\([^)]*, )\d+\)", r"\1<id>)", text)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the README shows what the example prints on Python 3.11")
@pytest.mark.parametrize("example", ["first", "breaks"])
def test_readme_shows_what_the_example_prints(example):
    code = (ROOT / "examples" / f"{example}.py").read_text()
    ran = subprocess.run([sys.executable, f"examples/{example}.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    blocks = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
    body = code[code.rindex("import cdynamo\n") + len("import cdynamo\n") :].strip()
    at = next(i for i, (language, text) in enumerate(blocks) if language == "python" and body in re.sub(r"  # as torch.compile:.*", "", text))
    output = plain(ran.stdout)
    for piece in plain(blocks[at + 1][1]).split("...\n"):
        assert piece in output
