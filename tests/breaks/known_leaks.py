"""Cases that leave something behind with each call, with the reason. Not strict: how much is a matter of when the collector runs."""

NEW_EACH_TIME = "an object that is new in each call is guarded by its identity: captures add up to the limit of recompiles"

KNOWN_LEAKS: dict[str, str] = {
    "lang_async.asyncio_run": NEW_EACH_TIME,
    "class_creation.generic_inside": NEW_EACH_TIME,
    "class_creation.make_dataclass_inside": NEW_EACH_TIME,
    "exceptions_found.texts_of_text_classes": NEW_EACH_TIME,
    "class_library.copies": "with a break at every 9th instruction, frames of module copy are captured anew in each call (ids in the memo)",
}
