"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

import sys

import torch

KNOWN: dict[str, str] = {}
if sys.version_info >= (3, 12):
    KNOWN["lang_async.async_for"] = "a coroutine that has begun is left where 3.12 loops: a break in its caller"
if torch.__version__ < "2.13":
    KNOWN["torch_state.profile_that_nobody_reads"] = "that torch's profiler warns of what it clears; one that is left out does not"
    KNOWN["autograd.setup_context_with_keyword"] = "that torch's Function.apply takes no keywords, ours does"
