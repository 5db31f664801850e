import sys

import build_rooms
import pytest


@pytest.fixture(scope="session")
def rooms():
    """The extension with these rooms alone, built once per state of the sources."""
    folder = str(build_rooms.build())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    import bytecode_rooms

    return bytecode_rooms
