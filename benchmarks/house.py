"""Figures of the house: how long, how repetitive, how well checked is this code? Run as `python benchmarks/house.py`."""

import ast
import re
import statistics
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RUN = 6
"""So many equal lines in a row are repetition; fewer are idiom."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(folder: str = "src/codevae") -> dict[Path, str]:
    """The text of every Python file of a folder, by path from the root."""
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py"))}


def functions(text: str) -> list[Function]:
    """Every function of a file, nested ones and methods included."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]


def length(function: Function) -> int:
    """Lines of a function from `def` to its end, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


def statements(text: str) -> list[str]:
    """A file's code, line by line, in one normal form: no comments, docstrings or imports, and one way to break lines."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    lines = [line.strip() for line in ast.unparse(tree).splitlines()]
    return [line for line in lines if line and not line.startswith(("import ", "from "))]


def repeated(texts: list[str]) -> float:
    """The share of code lines that lie in a run of RUN lines which occurs elsewhere too."""
    files = [statements(text) for text in texts]
    places = defaultdict(list)
    for number, lines in enumerate(files):
        for start in range(len(lines) - RUN + 1):
            places[tuple(lines[start : start + RUN])].append((number, start))
    inside = {(number, start + step) for found in places.values() if len(found) > 1 for number, start in found for step in range(RUN)}
    return len(inside) / max(1, sum(map(len, files)))


def main() -> None:
    code, tests = sources(), sources("tests")
    lengths = sorted(length(function) for text in code.values() for function in functions(text))
    test_lines = sum(len(text.splitlines()) for text in tests.values())
    close = sum(len(re.findall(r"\b(?:allclose|assert_close|assert_allclose|approx|isclose)\(", text)) for text in tests.values())
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    figures = {
        "modules": len(code),
        "lines": sum(len(text.splitlines()) for text in code.values()),
        "functions": len(lengths),
        "function length, median": statistics.median(lengths),
        "function length, 95th percentile": statistics.quantiles(lengths, n=20)[-1],
        "repeated lines": f"{repeated(list(code.values())):.1%}",
        "lines of tests": test_lines,
        "closeness checks per 1,000 lines of tests": f"{1000 * close / max(1, test_lines):.1f}",
        "runtime dependencies": len(dependencies),
    }
    for name, figure in figures.items():
        print(f"{name:<42} {figure}")


if __name__ == "__main__":
    main()
