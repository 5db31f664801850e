"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

KNOWN: dict[str, str] = {}
