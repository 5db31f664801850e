"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

EARLY = "a local that is not read any more is not carried over the break, so its object dies before eager would let it"

KNOWN: dict[str, str] = {
    **{
        f"break_values.lifetime_{name}": EARLY
        for name in (
            "temporary_directory", "finaliser_rebound",
        )
    },
    "break_positions.hash_protocol": "a dict with a key whose __hash__ and __repr__ have effects: they are called more often than in eager",
}  # fmt: skip
