"""The programs of examples/ run, and do what they say."""

import importlib.util
from pathlib import Path


def example(name: str):
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_method_of_ones_own_learns():
    assert example("your_own_method").main(steps=60) > 0.4  # ten classes: chance is 0.1
