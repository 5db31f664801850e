"""Refuses to start where the extension cannot work, in one sentence."""

from __future__ import annotations

import importlib.machinery
import os
import sys

SUPPORTED = ((3, 11), (3, 12))


def check_python() -> None:
    if sys.version_info[:2] not in SUPPORTED or sys.implementation.name != "cpython":
        wanted = " and ".join(".".join(map(str, version)) for version in SUPPORTED)
        raise ImportError(f"cdynamo supports CPython {wanted}, but this is {sys.implementation.name} {sys.version.split()[0]}.")


def check_extension() -> None:
    """The built file must be there for this Python."""
    here = os.path.dirname(__file__)
    names = [name for name in os.listdir(here) if name.startswith("_C.") and name.endswith((".so", ".pyd"))]
    if names and not any(name == "_C" + suffix for name in names for suffix in importlib.machinery.EXTENSION_SUFFIXES):
        raise ImportError(f"cdynamo was built for another Python ({', '.join(names)}) than this {sys.version.split()[0]}; build it again.")
    if not names:
        raise ImportError("cdynamo's extension is not built; run `make build` or `pip install .` first.")


def check_torch(built_for: tuple[str, str], version: str) -> None:
    if version != built_for[1]:
        raise ImportError(f"cdynamo was built for torch {built_for[1]}, but torch {version} is installed; build it again.")
