"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

import sys

KNOWN: dict[str, str] = {}
if sys.version_info >= (3, 12):
    KNOWN["exceptions_found.suggestions_for_names"] = "3.12's traceback module looks at the locals of frames: those of inlined calls are not kept"
