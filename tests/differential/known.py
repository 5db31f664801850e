"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

import sys

import torch

KNOWN: dict[str, str] = {}
if sys.version_info >= (3, 12):
    KNOWN["cpython_found_cls.protocols_look_at_the_instance"] = "3.12's inspect.getattr_static has an lru_cache, which CPython calls: two breaks"
    KNOWN["found5_library.type_variables"] = "3.12's type variables are made by C code: a break"
    KNOWN["found5_library.proxy_refuses"] = "3.12 says of a mapping proxy what the dict in it says: other words"
    KNOWN["found5_classes.typed_named_tuple_refuses"] = "captured anew in each call on 3.12"
    KNOWN["exceptions_found.suggestions_for_names"] = "3.12's traceback module looks at the locals of frames: those of inlined calls are not kept"
if torch.__version__ < "2.13":
    KNOWN["torch_state.profile_that_nobody_reads"] = "that torch's profiler warns of what it clears; one that is left out does not"
    KNOWN["autograd.setup_context_with_keyword"] = "that torch's Function.apply takes no keywords, ours does"
