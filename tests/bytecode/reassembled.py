"""Reassembly of whole modules, and an import hook that applies it to everything imported from source.

`python reassembled.py test.test_json ...` runs those unittest modules with every module that is imported after the
start decoded and assembled anew."""

import importlib.machinery
import signal
import sys
import types

import build_rooms

_folder = str(build_rooms.build())
if _folder not in sys.path:
    sys.path.insert(0, _folder)
import bytecode_rooms  # noqa: E402

count = 0  # code objects made so far


def reassemble(code):
    """`code` and every code object among its constants, decoded and assembled again."""
    global count
    count += 1
    made = bytecode_rooms.reassemble(code)
    return made.replace(co_consts=tuple(reassemble(c) if isinstance(c, types.CodeType) else c for c in made.co_consts))


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname):
        return reassemble(super().get_code(fullname))


class _Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, fullname, path=None, target=None):
        spec = super().find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


# Imported before the hook is set, and wanted through it.
_AGAIN = ("json", "unittest", "contextlib", "concurrent", "tempfile", "subprocess", "threading", "random", "shutil", "hashlib")


def main(names):
    sys.meta_path.insert(0, _Finder)
    for name in [name for name in sys.modules if name.split(".")[0] in _AGAIN]:
        del sys.modules[name]
    import unittest

    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=0).run(suite)
    print(f"reassembled {count} code objects, ran {result.testsRun} tests")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
