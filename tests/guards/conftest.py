"""The extension under test: cdynamo._C, or a private build whose folder is in CDYNAMO_TEST_LIB."""

import importlib
import os
import sys

import pytest

if os.environ.get("CDYNAMO_TEST_LIB"):
    try:
        import torch  # noqa: F401  (its libraries must be loaded first)
    except ImportError:
        pass
    sys.path.insert(0, os.environ["CDYNAMO_TEST_LIB"])
    extension = importlib.import_module("_C")
else:
    extension = importlib.import_module("cdynamo._C")


@pytest.fixture(scope="session")
def C():
    return extension
