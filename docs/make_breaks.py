"""Writes docs/breaks.md from the engine's table of reasons (csrc/interp/break_reasons.def). Run it after changing the table."""

from __future__ import annotations

import pathlib

import cdynamo

HEAD = """# Why a capture breaks

Where a function does something that cannot stand in a graph, the graph so far is closed, Python runs the one step, and a new
graph begins after it. The answer is the same as without compiling; only speed is lost. With `fullgraph=True` a break is an
error instead (`torch._dynamo.exc.Unsupported`).

`TORCH_LOGS=graph_breaks` (or `CDYNAMO_LOGS=graph_breaks`) shows each break with its place; `print(cdynamo.explain(fn)(*args))`
shows one call line by line. Each reason has an id that stays the same in all versions. Titles are torch's own where torch
has the same reason.

This page is made by `docs/make_breaks.py`.
"""


def page() -> str:
    reasons = sorted(cdynamo._C.break_reasons(), key=lambda row: row["id"])
    parts = [HEAD, "| id | reason |\n|---|---|"]
    parts[-1] += "".join(f"\n| [{row['id']}](#{row['id'].lower()}) | {row['title']} |" for row in reasons) + "\n"
    for row in reasons:
        example = "\n".join(f"    {line}".rstrip() for line in row["example"].split("\n"))
        hints = "\n".join(f"- {hint}" for hint in row["hints"])
        parts.append(
            f"## {row['id']}\n\n**{row['title']}** (`{row['reason']}`)\n\n{row['explanation']}\n\nWhat to do:\n\n{hints}\n\nExample:\n\n{example}\n"
        )
    return "\n".join(parts)


if __name__ == "__main__":
    (pathlib.Path(__file__).parent / "breaks.md").write_text(page())
