"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

import sys

import torch

KNOWN: dict[str, str] = {}
if sys.version_info >= (3, 12):
    DEQUES = ("all_of_it_deque", "all_of_it_deque_half", "all_of_it_deque_reversed", "two_of_it_deque", "two_of_it_deque_half")
    for name in (*DEQUES, "two_of_it_deque_reversed", "deque_that_was_changed_meanwhile", "endless_ones"):
        KNOWN[f"existing_iterators.{name}"] = "3.12 lays deques and counts out in another way: their iterators break"
    for name in ("class_library.abstract_classes", "cpython_found_cls.protocols_look_at_the_instance"):
        KNOWN[name] = "3.12's typing asks for the name of its caller's module: a break"
    KNOWN["cpython_found_cls.set_name_that_raises"] = "3.12 adds a note instead of raising another error: a break"
    KNOWN["cpython_found_cont.documented_fields"] = "the __doc__ of a field of a named tuple made inside is lost at a break"
    KNOWN["exceptions_found.suggestions_for_names"] = "the words of 3.12's traceback module differ"
if torch.__version__ < "2.13":
    KNOWN["torch_state.profile_that_nobody_reads"] = "that torch's profiler warns of what it clears; one that is left out does not"
    KNOWN["autograd.setup_context_with_keyword"] = "that torch's Function.apply takes no keywords, ours does"
