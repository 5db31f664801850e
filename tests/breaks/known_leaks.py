"""Cases that leave something behind with each call, with the reason. Strict: one that does not must leave the list."""

KNOWN_LEAKS: dict[str, str] = {}
