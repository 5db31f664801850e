"""Loads the extension; where the engine is not built in yet, puts stand-ins for what the front needs of it.

A stand-in runs the function as it is, and says so in a "skip" event.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import pathlib
import sys
import types

import torch  # noqa: F401  (its libraries first)

_ROOT = pathlib.Path(__file__).absolute().parents[2]


def load():
    if str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    if "cdynamo._C" in sys.modules:
        return sys.modules["cdynamo._C"]
    found = [path for suffix in importlib.machinery.EXTENSION_SUFFIXES for path in (_ROOT / "cdynamo").glob(f"_C{suffix}")]
    spec = importlib.util.spec_from_file_location("cdynamo._C", found[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if hasattr(module, "CompiledFunction"):
        return None  # the real one: let the package import it itself
    sys.modules["cdynamo._C"] = module
    callbacks = {}

    class CompiledFunction:
        def __init__(self, function, options, recompile_limit=-1):
            self._function, self._options = function, options

        def __call__(self, *args, **kwargs):
            code = getattr(self._function, "__code__", None)
            callbacks["on_event"]("skip", {"code": code, "reason": "no engine", "stack": []})
            return self._function(*args, **kwargs)

        def __get__(self, instance, owner=None):
            return self if instance is None else types.MethodType(self, instance)

    class CompiledModuleCall:
        def __init__(self, module, compiled_forward, compiled_call):
            self._module, self._forward, self._call = module, compiled_forward, compiled_call

        def __call__(self, *args, **kwargs):
            hooks = self._module._forward_hooks or self._module._forward_pre_hooks or self._module._backward_hooks
            return (self._call if hooks else self._forward)(*args, **kwargs)

    module.CompiledFunction = CompiledFunction
    module.CompiledModuleCall = CompiledModuleCall
    module.reset = lambda: None
    module.set_front = callbacks.update
    module.configure = lambda **settings: {}
    return module


load()
