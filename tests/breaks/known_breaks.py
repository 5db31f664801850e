"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

KNOWN: dict[str, str] = {}

# The same for cases of the differential tests that are broken at every nth instruction.
KNOWN_STRESS: dict[str, str] = {
    "rebuild.stand_ins_work_outside": "in the middle of our own cmp_to_key, which then makes a function of its own: no program can break there",
}
