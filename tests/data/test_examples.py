"""The examples in the docstrings of codevae.data run and say what they say."""

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import codevae.data

MODULES = ["codevae.files", *(f"codevae.data.{module.name}" for module in pkgutil.iter_modules(codevae.data.__path__))]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    importlib.import_module(module)
    found = doctest.testmod(sys.modules[module])  # a function of the package may hide the module it is named after
    assert not found.failed


def test_reading_data_needs_nothing_special():
    code = "import sys, codevae.data; print([name for name in ('sklearn', 'matplotlib', 'scipy') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
