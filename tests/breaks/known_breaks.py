"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

KNOWN: dict[str, str] = {}

# The same for cases of the differential tests that are broken at every nth instruction.
KNOWN_STRESS: dict[str, str] = {}
