"""The builtins as they are when cdynamo is imported.

What the engine calls while a program runs must not depend on what that program makes of them (`builtins.len = ...`). A module whose
functions use these has `from ._own_builtins import __builtins__` among its imports.
"""

from __future__ import annotations

import builtins

__builtins__ = dict(vars(builtins))  # type: ignore[assignment]
