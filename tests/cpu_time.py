"""How long a process has worked. Limits on work hold on a busy machine too, where limits on time do not."""

from __future__ import annotations

import os
import time
from pathlib import Path

_started: dict[int, float] = {}


def cpu_seconds(pid: int) -> float:
    """Of the process itself; where the system does not tell, the time since the first question."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.monotonic() - _started.setdefault(pid, time.monotonic())
