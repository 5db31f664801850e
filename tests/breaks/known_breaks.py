"""Cases that fail today, with the reason. Strict: one that passes must leave the list."""

NATIVE = "C++ code of the engine is half way when the callee breaks: the callee is captured as a frame of its own, 4 graphs instead of 2"
GENERATOR = "a generator that was made real runs as CPython runs it: its operations are not captured"
EARLY = "a local that is not read any more is not carried over the break, so its object dies before eager would let it"

KNOWN: dict[str, str] = {
    **{
        f"break_depth.{name}": NATIVE
        for name in (
            "callee_property_set", "callee_property_delete", "callee_iter", "callee_max_key",
            "callee_of_map", "callee_of_sorted", "callee_of_next",
        )
    },
    **{f"break_everywhere.generators_{n}": GENERATOR for n in (0, 1, 2, 4, "all")},
    **{
        f"break_generators.{name}": GENERATOR
        for name in (
            "comprehension_expression_tuple", "generator_half_way_tensor", "generator_breaks_inside", "generator_breaks_inside_next",
            "generator_breaks_inside_list", "generator_breaks_inside_zip", "generator_breaks_inside_try", "generator_breaks_in_yield_from",
        )
    },
    "break_loops.over_tensor_generator": GENERATOR,
    "break_loops.opaque_in_generator": GENERATOR,
    **{
        f"break_values.lifetime_{name}": EARLY
        for name in (
            "temporary_directory", "finaliser_rebound",
        )
    },
    "break_positions.hash_protocol": "a dict with a key whose __hash__ and __repr__ have effects: they are called more often than in eager",
}  # fmt: skip
