"""Builds base, cpython and bytecode alone as the extension `bytecode_rooms`, so that this room is tested without
the rest of the engine (and on a Python without torch). `python build_rooms.py` prints the folder it lies in."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ["-O2", "-g1", "-fPIC", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"]


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join(command) + "\n" + done.stderr[-6000:])


def build():
    csrc = ROOT / "csrc"
    files = [pathlib.Path(__file__).with_name("rooms.cpp")]
    for room in ("base", "cpython", "bytecode"):
        files += sorted(p for p in (csrc / room).iterdir() if p.suffix in (".c", ".cpp", ".h", ".def"))
    sources = [p for p in files if p.suffix in (".c", ".cpp")]
    flags = [*FLAGS, *os.environ.get("CDYNAMO_TEST_FLAGS", "").split()]
    digest = hashlib.sha256(repr((sys.version, flags)).encode() + b"".join(p.read_bytes() for p in files)).hexdigest()[:16]
    folder = pathlib.Path(tempfile.gettempdir()) / f"cdynamo-bytecode-{os.getuid()}" / digest
    library = folder / ("bytecode_rooms" + sysconfig.get_config_var("EXT_SUFFIX"))
    if library.exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    work = pathlib.Path(tempfile.mkdtemp(dir=folder))  # of this process: several may build at once
    include = ["-I", str(csrc), "-isystem", sysconfig.get_paths()["include"]]

    def compile_one(source):
        out = work / (source.parent.name + "_" + source.name + ".o")
        compiler = ["gcc"] if source.suffix == ".c" else ["g++", "-std=c++20"]
        _run([*compiler, *flags, *include, "-c", str(source), "-o", str(out)])
        return str(out)

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_one, sources))
    linked = work / library.name
    _run(["g++", *flags, "-shared", "-o", str(linked), *objects])
    os.replace(linked, library)
    shutil.rmtree(work)
    return folder


if __name__ == "__main__":
    print(build())
