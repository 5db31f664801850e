"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

import sys

KNOWN: dict[str, str] = {
    "break_positions.hash_protocol": "a dict with a key whose __hash__ and __repr__ have effects: they are called more often than in eager",
}  # fmt: skip

# The same for cases of the differential tests that are broken at every nth instruction.
KNOWN_STRESS: dict[str, str] = {}
if sys.version_info < (3, 12):
    KNOWN_STRESS["lang_functions.endless_recursion_uncaught"] = "how deep the recursion is when it ends, and so the words of the error, differ"
