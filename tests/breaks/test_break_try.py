"""Breaks in `try`: the right handler runs, with the exception and context that Python would give it."""

# The rows of the tables use the names imported here.
# ruff: noqa: F401

import sys

import torch
from harness import Breaks, Setup, boom, chain, ext, ext2, note, t

import cdynamo

breaks = Breaks()
case, scenario = breaks.case, breaks.scenario


class Mine(Exception):
    pass


class Other(Exception):
    pass


@torch.compiler.disable
def handled():
    """The exception that is being handled here."""
    return sys.exc_info()[1]


@torch.compiler.disable
def boom_from(cause):
    raise Mine("from") from cause


# ---- every combination of clauses, with the broken call in every clause, raising or not ----

CLAUSES = {
    "except": "try:\n    {t}\nexcept Mine:\n    {e}",
    "except_else": "try:\n    {t}\nexcept Mine:\n    {e}\nelse:\n    {l}",
    "finally": "try:\n    {t}\nfinally:\n    {f}",
    "except_finally": "try:\n    {t}\nexcept Mine:\n    {e}\nfinally:\n    {f}",
    "all": "try:\n    {t}\nexcept Mine:\n    {e}\nelse:\n    {l}\nfinally:\n    {f}",
    "two_handlers": "try:\n    {t}\nexcept Other:\n    y = y * 100\nexcept Mine:\n    {e}",
    "tuple_of_types": "try:\n    {t}\nexcept (Other, Mine):\n    {e}",
    "bare_except": "try:\n    {t}\nexcept:\n    {e}",
    "base_class": "try:\n    {t}\nexcept Exception:\n    {e}",
}
PLAIN = {"t": "y = y + 1", "e": "y = y * 2", "l": "y = y * 3", "f": "y = y * 5"}
BROKEN = {
    "t": {"quiet": "y = y + 1\n    ext(y)", "raises": "y = y + 1\n    boom(Mine, 1)", "raises_other": "y = y + 1\n    boom(ZeroDivisionError, 1)"},
    "e": {"quiet": "y = y * 2\n    ext(y)", "raises": "y = y * 2\n    boom(Other, 2)", "bare_raise": "y = y * 2\n    ext(y)\n    raise"},
    "l": {"quiet": "y = y * 3\n    ext(y)", "raises": "y = y * 3\n    boom(Mine, 3)"},
    "f": {"quiet": "y = y * 5\n    ext(y)", "raises": "y = y * 5\n    boom(Other, 4)"},
}
NAMES = {"t": "try", "e": "except", "l": "else", "f": "finally"}
ROWS = {}
for clauses, text in CLAUSES.items():
    for place, variants in BROKEN.items():
        if "{" + place + "}" not in text:
            continue
        for variant, code in variants.items():
            parts = {**PLAIN, place: code}
            if place == "e":  # the handler must be reached
                parts["t"] = "y = y + 1\n    raise Mine(0)"
            body = "y = x + 1\n" + text.format(**parts) + "\ny = y - 7\nreturn y"
            ROWS[f"{clauses}_{NAMES[place]}_{variant}"] = (body, {"graphs": (1, 3)})
            if place == "f" and clauses == "finally":  # also while an exception passes
                parts["t"] = "y = y + 1\n    raise Mine(0)"
                body = "y = x + 1\n" + text.format(**parts) + "\nreturn y"
                ROWS[f"{clauses}_{NAMES[place]}_{variant}_passing"] = (body, {"graphs": (1, 3)})
breaks.table(ROWS, globals())

# ---- the exception object, contexts and causes ----

OBJECTS = {
    "as_name": "try:\n    y = x + 1\n    boom(Mine, 1)\nexcept Mine as e:\n    n = e.args[0]\nreturn y * n * 2",
    "as_name_break_inside": """
        try:
            y = x + 1
            raise Mine(2)
        except Mine as e:
            ext(y)
            y = y * e.args[0]
        return y - 1
        """,
    "as_name_unbound_after": """
        try:
            y = x + 1
            boom(Mine, 1)
        except Mine as e:
            ext(y)
        try:
            e
        except UnboundLocalError:
            y = y * 2
        return y
        """,
    "as_name_kept": "try:\n    y = x + 1\n    boom(Mine, 1)\nexcept Mine as e:\n    kept = e\nreturn y * 2, kept",
    "exc_info_in_handler": """
        try:
            y = x + 1
            raise Mine(2)
        except Mine as e:
            same = handled() is e
        return y * 2, same
        """,
    "exc_info_after_handler": """
        try:
            y = x + 1
            raise Mine(2)
        except Mine:
            y = y * 2
        return y, handled()
        """,
    "exc_info_in_finally": """
        try:
            try:
                y = x + 1
                raise Mine(2)
            finally:
                note(type(handled()).__name__)
        except Mine:
            y = y * 2
        return y
        """,
    "exc_info_nested": """
        try:
            raise Mine(1)
        except Mine:
            y = x + 1
            try:
                raise Other(2)
            except Other:
                a = handled()
            b = handled()
        return y * 2, type(a).__name__, type(b).__name__, a.__context__ is b
        """,
    "context_set": """
        try:
            try:
                y = x + 1
                raise Mine(1)
            except Mine:
                boom(Other, 2)
        except Other as e:
            c = e.__context__
        return y * 2, type(c).__name__, c.args
        """,
    "context_from_broken": """
        try:
            try:
                y = x + 1
                boom(Mine, 1)
            except Mine:
                y = y * 2
                raise Other(2)
        except Other as e:
            c = e.__context__
        return y * 2, type(c).__name__, c.args
        """,
    "context_in_finally": """
        try:
            try:
                y = x + 1
                boom(Mine, 1)
            finally:
                boom(Other, 2)
        except Other as e:
            c = e.__context__
        return y * 2, type(c).__name__
        """,
    "context_none": """
        y = x + 1
        try:
            raise Mine(1)
        except Mine:
            pass
        try:
            boom(Other, 2)
        except Other as e:
            c = e.__context__
        return y * 2, c
        """,
    "cause": """
        try:
            y = x + 1
            boom_from(ValueError('why'))
        except Mine as e:
            c = e.__cause__
        return y * 2, c
        """,
    "cause_in_handler": """
        try:
            try:
                y = x + 1
                boom(Mine, 1)
            except Mine as m:
                raise Other(2) from m
        except Other as e:
            c = e.__cause__
        return y * 2, type(c).__name__, c.args
        """,
    "from_none": """
        try:
            try:
                y = x + 1
                boom(Mine, 1)
            except Mine:
                raise Other(2) from None
        except Other as e:
            r = e.__suppress_context__, type(e.__context__).__name__
        return y * 2, r
        """,
    "leaves_with_context": "try:\n    y = x + 1\n    boom(Mine, 1)\nexcept Mine:\n    y = y * 2\n    raise Other(2)",
    "leaves_with_cause": """
        try:
            y = x + 1
            boom(Mine, 1)
        except Mine as e:
            y = y * 2
            raise Other(2) from e
        """,
    "leaves_by_bare_raise": "try:\n    y = x + 1\n    boom(Mine, 1)\nexcept Mine:\n    y = y * 2\n    raise",
    "bare_raise_after_break": """
        try:
            try:
                y = x + 1
                raise Mine(1)
            except Mine:
                ext(y)
                raise
        except Mine as e:
            y = y * 2
        return y
        """,
    "bare_raise_nothing": """
        y = x + 1
        ext(y)
        try:
            raise
        except RuntimeError as e:
            s = str(e)
        return y * 2, s
        """,
    "note_added": "try:\n    y = x + 1\n    boom(Mine, 1)\nexcept Mine as e:\n    e.add_note('seen')\n    raise",
    "raise_given": """
        e = Mine(5)
        y = x + 1
        try:
            boom(e)
        except Mine as f:
            same = f is e
        return y * 2, same
        """,
    "group": """
        y = x + 1
        try:
            boom(ExceptionGroup, 'g', [Mine(1), Other(2)])
        except* Mine as g:
            y = y * 2
        except* Other as g:
            y = y * 3
        return y
        """,
    "group_rest": """
        y = x + 1
        try:
            try:
                boom(ExceptionGroup, 'g', [Mine(1), ValueError(2)])
            except* Mine as g:
                y = y * 2
        except ExceptionGroup as g:
            y = y * len(g.exceptions)
        return y
        """,
    "stop_iteration": "y = x + 1\ntry:\n    ext(iter([])).__next__()\nexcept StopIteration:\n    y = y * 2\nreturn y",
    "tensor_error": "y = x + 1\ntry:\n    y.reshape(7)\nexcept RuntimeError:\n    y = y * 2\nreturn y",
    "tensor_error_after_break": """
        y = x + 1
        ext(y)
        try:
            y = y.reshape(7)
        except RuntimeError:
            y = y * 2
        return y
        """,
    "type_error_call": "y = x + 1\ntry:\n    ext2()\nexcept TypeError:\n    y = y * 2\nreturn y",
    "name_error": "y = x + 1\ntry:\n    no_such_name\nexcept NameError:\n    y = y * 2\nreturn ext(y) * 3",
    "dynamic_type": """
        kinds = [Mine, Other]
        y = x + 1
        try:
            boom(Other, 1)
        except tuple(kinds):
            y = y * 2
        return y
        """,
    "opaque_type": "y = x + 1\ntry:\n    raise Mine(1)\nexcept ext(Mine):\n    y = y * 2\nreturn y",
    "opaque_type_misses": """
        y = x + 1
        try:
            raise Mine(1)
        except ext(Other):
            y = y * 2
        except Mine:
            y = y * 3
        return y
        """,
}
breaks.table({n: (r, {"graphs": (1, 3)}) for n, r in OBJECTS.items()}, globals())
for c in breaks.cases:
    if c.name in ("tensor_error", "tensor_error_after_break", "type_error_call", "name_error", "bare_raise_nothing"):
        c.breaks, c.share = (0, 4), 0.0

# ---- ways out of try ----

WAYS = {
    "return_in_try": "try:\n    y = x + 1\n    ext(y)\n    return y * 2\nfinally:\n    note('finally')",
    "return_broken_in_try": "try:\n    return ext(x + 1)\nfinally:\n    note('finally')",
    "return_in_finally": "try:\n    y = x + 1\n    boom(Mine, 1)\nfinally:\n    return y * 2",
    "return_in_finally_over_return": "y = x + 1\ntry:\n    ext(y)\n    return y\nfinally:\n    return y * 2",
    "return_kept_over_finally": "y = x + 1\ntry:\n    return y * 2\nfinally:\n    y = ext(y) * 100\n    note(y)",
    "return_in_else": """
        try:
            y = x + 1
            ext(y)
        except Mine:
            y = y * 100
        else:
            return y * 2
        return y
        """,
    "return_in_except": "try:\n    y = x + 1\n    boom(Mine, 1)\nexcept Mine:\n    return y * 2\nreturn y",
    "break_in_finally": """
        y = x
        for i in range(3):
            try:
                y = y + 1
                boom(Mine, i)
            finally:
                break
        return y * 2
        """,
    "continue_in_finally": """
        y = x
        for i in range(3):
            try:
                y = y + 1
                boom(Mine, i)
            finally:
                continue
        return y * 2
        """,
    "break_in_try": """
        y = x
        for i in range(3):
            try:
                y = y + 1
                if ext(i) == 1:
                    break
            finally:
                y = y * 2
        return y - 1
        """,
    "continue_in_except": """
        y = x
        for i in range(3):
            try:
                y = y + 1
                boom(Mine, i)
            except Mine:
                continue
        return y * 2
        """,
    "nested_inner_handles": """
        y = x
        try:
            y = y + 1
            try:
                y = y * 2
                boom(Mine, 1)
            except Mine:
                y = y * 3
            y = y + 5
        except Mine:
            y = y * 100
        return y
        """,
    "nested_outer_handles": """
        y = x
        try:
            y = y + 1
            try:
                y = y * 2
                boom(Other, 1)
            except Mine:
                y = y * 3
            y = y + 5
        except Other:
            y = y * 7
        return y
        """,
    "nested_finally": """
        y = x
        try:
            try:
                y = y + 1
                boom(Mine, 1)
            finally:
                y = y * 2
        except Mine:
            y = y * 3
        return y
        """,
    "nested_three": """
        y = x
        try:
            try:
                try:
                    y = y + 1
                    boom(Mine, 1)
                finally:
                    y = y * 2
            except Other:
                y = y * 100
            finally:
                y = y * 3
        except Mine:
            y = y * 5
        return y
        """,
    "try_in_handler": """
        y = x
        try:
            y = y + 1
            boom(Mine, 1)
        except Mine:
            try:
                y = y * 2
                boom(Other, 2)
            except Other:
                y = y * 3
            y = y + 1
        return y
        """,
    "try_in_finally": """
        y = x
        try:
            y = y + 1
        finally:
            try:
                y = y * 2
                boom(Other, 2)
            except Other:
                y = y * 3
        return y
        """,
    "loop_in_try": """
        y = x
        try:
            for i in range(5):
                y = y + 1
                if i == 2:
                    boom(Mine, i)
        except Mine as e:
            y = y * e.args[0]
        return y
        """,
    "with_in_try": """
        y = x
        try:
            with Manager():
                y = y + 1
                boom(Mine, 1)
        except Mine:
            y = y * 2
        return y
        """,
    "try_in_with": """
        y = x
        with Manager():
            try:
                y = y + 1
                boom(Mine, 1)
            except Mine:
                y = y * 2
        return y
        """,
    "retry": """
        y = x
        for attempt in range(4):
            try:
                y = y + 1
                if attempt < 2:
                    boom(Mine, attempt)
                y = y * 2
                break
            except Mine:
                y = y - 3
        else:
            y = y * 100
        return y
        """,
    "value_on_stack_lost": """
        y = x + 1
        try:
            z = [y * 2, boom(Mine, 1), y * 3]
        except Mine:
            z = [y * 4]
        return z
        """,
    "partial_effects": """
        d = {}
        y = x + 1
        try:
            d['a'] = y
            d['b'] = boom(Mine, 1)
            d['c'] = y
        except Mine:
            d['e'] = y * 2
        return d
        """,
    "effect_then_raise": """
        d = []
        y = x + 1
        try:
            d.append(y)
            boom(Mine, len(d))
        except Mine as e:
            d.append(y * 2)
        return d
        """,
}


class Manager:
    def __enter__(self):
        note("enter")

    def __exit__(self, *exc):
        note("exit", exc[0] and exc[0].__name__)


LOOPS = ("break_in_finally", "continue_in_finally", "break_in_try", "continue_in_except", "loop_in_try", "retry")
breaks.table({n: (r, {"graphs": (1, 8) if n in LOOPS else (1, 4), "settled": 2}) for n, r in WAYS.items()}, globals())


@scenario(graphs=(1, 3), settled=2)
def exception_of_the_caller():
    """The compiled function is called in a handler: that exception is the context of what it raises."""

    def inner(x):
        x = x + 1
        ext(type(handled()).__name__)
        raise Mine(1)

    def fn(x):
        try:
            raise Other(0)
        except Other:
            inner(x * 2)

    return Setup(fn, lambda: (t(3),))


def test_called_while_handling():
    """Called from outside while an exception is handled there: the opaque call sees it, and it becomes a context."""

    def fn(x, fails):
        y = x + 1
        seen = type(handled()).__name__
        if fails:
            raise Mine(1)
        return y * 2, seen

    def run(call, fails):
        try:
            raise Other(0)
        except Other:
            try:
                return call(t(3), fails)
            except Mine as error:
                return chain(error), type(handled()).__name__

    compiled = cdynamo.compile(fn, backend="eager")
    for fails in (False, True, False, True):
        a, b = run(fn, fails), run(compiled, fails)
        assert repr(a) == repr(b)
    assert handled() is None


test = breaks.as_test()
