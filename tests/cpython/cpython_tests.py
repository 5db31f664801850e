"""CPython's own tests with each test's body captured, against the plain run of the same test: `make cpython-tests`.

    cpython_tests.py [-j N] [--verbose] [MODULE, ...]

A module is run by processes of its own (one_module.py). A test that takes its process down is a crash, one that takes longer than
LIMIT seconds and ten times its plain time is a timeout; the module goes on behind it in a new process. Tests that do not pass plainly
are not counted.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from not_judged import NOT_JUDGED

MODULES = """
    test_list test_tuple test_dict test_dictviews test_dictcomps test_listcomps test_setcomps test_set test_generators test_genexps
    test_generator_stop test_exceptions test_baseexception test_raise test_exception_group test_exception_hierarchy
    test_exception_variations test_except_star test_with test_iter test_iterlen test_enumerate test_range test_slice test_index
    test_itertools test_functools test_collections test_deque test_defaultdict test_ordered_dict test_userdict test_userlist test_userstring
    test_contextlib test_copy test_dataclasses test_enum test_operator test_bool test_int test_int_literal test_float test_complex
    test_numeric_tower test_string test_unicode test_fstring test_format test_bytes test_scope test_decorators test_unpack test_unpack_ex
    test_patma test_descr test_descrtut test_class test_super test_property test_compare test_contains test_richcmp test_augassign
    test_binop test_builtin test_call test_extcall test_funcattrs test_grammar test_isinstance test_keywordonlyarg test_named_expressions
    test_positional_only_arg test_metaclass test_subclassinit test_abc test_typechecks test_types test_heapq test_bisect test_math
    test_cmath test_fractions test_statistics test_reprlib test_contextlib_async test_coroutines test_asyncgen test_yield_from test_pow
    test_hash test_sort test_string_literals test_global test_syntax test_long test_opcodes test_flufl test_pep646_syntax test_unary
    test_weakref test_weakset test_typing test_textwrap test_random test_bufio test_base64 test_colorsys test_graphlib test_pprint
    test_shlex test_calendar test_difflib test_getopt test_html test_ipaddress test_json test_optparse test_context test_copyreg
    test_keyword test_queue test_sched test_abstract_numbers test_binascii test_linecache test_print test_longexp test_time test_strtod
    test_structseq test_genericalias test_genericclass test_dynamicclassattribute test_fnmatch test_stringprep test_array test_struct
    test_argparse test_ast test_atexit test_charmapcodec test_cmd test_code test_codeccallbacks test_codecs test_codeop test_compile
    test_configparser test_csv test_decimal test_dict_version test_doctest2 test_email test_eof test_errno test_fileio test_future_stmt
    test_genericpath test_gettext test_glob test_hashlib test_hmac test_htmlparser test_http_cookies test_inspect test_locale test_logging
    test_marshal test_memoryio test_memoryview test_mimetypes test_netrc test_ntpath test_opcache test_pathlib test_peepholer
    test_picklebuffer test_pickletools test_plistlib test_posixpath test_quopri test_re test_robotparser test_secrets test_shelve test_stat
    test_strftime test_strptime test_symtable test_tempfile test_thread test_threading_local test_timeit test_tokenize test_tomllib
    test_traceback test_type_annotations test_type_comments test_ucn test_unicode_identifiers test_unicodedata test_unittest test_urlparse
    test_uu test_uuid test_warnings test_xdrlib test_xml_etree test_zlib
""".split()
LIMIT = 30.0  # seconds of work
ASLEEP = 10.0  # times its limit, in seconds of any kind
MEMORY = 8 << 30  # of addresses, most of which torch only maps
HERE = Path(__file__).parent

sys.path.insert(0, str(HERE.parent))
from cpu_time import cpu_seconds  # noqa: E402


@dataclasses.dataclass
class Module:
    name: str
    passed: int = 0
    wrong: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    crashes: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    timeouts: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    whole: int = 0
    broken: int = 0
    skipped: int = 0
    plain_seconds: float = 0.0
    seconds: float = 0.0
    slow: list[tuple[str, float, float]] = dataclasses.field(default_factory=list)
    reasons: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    not_judged: int = 0

    @property
    def tests(self) -> int:
        return self.passed + len(self.wrong) + len(self.crashes) + len(self.timeouts)


def run_process(name: str, mode: str, left_out: list[str], limits: dict[str, float]) -> tuple[dict[str, Any], str | None, str]:
    """One process to its end: what each test did, the test that ended it (if one did), and how."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        report.touch()
        environment = os.environ | {"CDYNAMO_STRICT": "1", "PYTHONFAULTHANDLER": "1", "PYTHONHASHSEED": "0"}
        with open(Path(folder) / "stderr", "w+") as stderr:
            process = subprocess.Popen(
                [sys.executable, str(HERE / "one_module.py"), name, mode, str(report), *left_out],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
            )  # fmt: skip
            done: dict[str, Any] = {}
            current: str | None = None
            ended = False
            since, worked = time.monotonic(), 0.0
            how = ""
            with open(report) as lines:
                rest = ""
                while True:
                    finished = process.poll() is not None
                    rest += lines.read()
                    *whole, rest = rest.split("\n")
                    for text in whole:
                        line = json.loads(text)
                        since, worked = time.monotonic(), cpu_seconds(process.pid)
                        if "start" in line:
                            current = line["start"]
                        elif "done" in line:
                            done[line.pop("done")] = line
                            current = None
                        else:
                            ended = True
                    if finished:
                        break
                    limit = limits.get(current, LIMIT) if current else 120.0
                    if cpu_seconds(process.pid) - worked > limit or time.monotonic() - since > ASLEEP * limit:
                        process.kill()
                        process.wait()
                        how = f"timeout after {limit:.0f} s"
                        break
                    time.sleep(0.02)
            if not how and not ended:
                stderr.seek(0)
                how = f"exit status {process.returncode}\n" + stderr.read()[-3000:]
            return done, current if how else None, how


def run_mode(name: str, mode: str, limits: dict[str, float]) -> tuple[dict[str, Any], dict[str, str]]:
    """All tests of a module, with a new process behind each that took one down."""
    done: dict[str, Any] = {}
    ends: dict[str, str] = {}
    while True:
        more, ended_by, how = run_process(name, mode, [*done, *ends], limits)
        done |= more
        if not how:
            return done, ends
        if ended_by is None:
            ends[f"{name} (outside of its tests)"] = how
            return done, ends
        ends[ended_by] = how


def judged(test: str) -> bool:
    return not any(fnmatch.fnmatchcase(test, pattern) for pattern in NOT_JUDGED)


def run_module(name: str) -> Module:
    plain, plain_ends = run_mode(name, "plain", {})
    limits = {test: max(LIMIT, 10 * line["seconds"]) for test, line in plain.items()}
    captured, ends = run_mode(name, "captured", limits)
    result = Module(name)
    for test, line in plain.items():
        if line["outcome"] not in ("passed", "expected failure"):
            continue
        if not judged(test):
            result.not_judged += 1
            continue
        result.plain_seconds += line["seconds"]
        if test in ends:
            (result.timeouts if ends[test].startswith("timeout") else result.crashes).append((test, ends[test]))
            continue
        if test not in captured:
            result.wrong.append((test, "was not run"))
            continue
        now = captured[test]
        result.seconds += now["seconds"]
        if now["seconds"] > 1 and now["seconds"] > 10 * line["seconds"]:
            result.slow.append((test, line["seconds"], now["seconds"]))
        if now["outcome"] != line["outcome"]:
            result.wrong.append((test, f"{now['outcome']}: {now['detail']}"))
            continue
        result.passed += 1
        if now["skips"] or not now["captures"]:
            result.skipped += 1
        elif now["broken"]:
            result.broken += 1
        else:
            result.whole += 1
        result.reasons.update(set(now["breaks"]))
    for test, how in ends.items():
        if test not in plain and test not in plain_ends:
            result.crashes.append((test, how))
    return result


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--reasons", type=int, default=0, help="print the N most frequent breaks")
    parser.add_argument("--verbose", action="store_true", help="print what each wrong test said")
    options = parser.parse_args()
    print(f"{'module':28} {'tests':>6} {'wrong':>6} {'crash':>6} {'time':>5}   {'whole':>6} {'broken':>6} {'skip':>5}  seconds (plain)")
    total = Module("all")
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for module in pool.map(run_module, options.modules):
            print(
                f"{module.name:28} {module.tests:6} {len(module.wrong):6} {len(module.crashes):6} {len(module.timeouts):5}   "
                f"{module.whole:6} {module.broken:6} {module.skipped:5}  {module.seconds:.1f} ({module.plain_seconds:.1f})"
            )
            for kind, tests in (("wrong", module.wrong), ("crash", module.crashes), ("timeout", module.timeouts)):
                for test, how in tests:
                    print(f"  {kind}: {test}: {how if options.verbose else how.strip().splitlines()[-1][:200]}")
            for test, before, now in module.slow:
                print(f"  slow: {test}: {now:.1f} s, plainly {before:.2f} s")
            sys.stdout.flush()
            for field in dataclasses.fields(Module):
                if field.name != "name":
                    setattr(total, field.name, getattr(total, field.name) + getattr(module, field.name))
    for reason, count in total.reasons.most_common(options.reasons):
        print(f"{count:6}  {reason}")
    share = 100 * total.whole / max(total.tests, 1)
    print(
        f"passed {total.passed}: {total.whole} captured whole, {total.broken} with breaks, {total.skipped} not captured; "
        f"{len(total.timeouts)} timeouts, {total.not_judged} not judged; {total.seconds:.0f} s ({total.plain_seconds:.0f} s plainly)"
    )
    wrong = len(total.wrong) + len(total.timeouts)
    print(f"cpython-tests: {total.tests} tests, {wrong} wrong, {len(total.crashes)} crashes, {share:.1f}% captured whole")
    return bool(total.wrong or total.crashes or total.timeouts)


if __name__ == "__main__":
    sys.exit(main())
