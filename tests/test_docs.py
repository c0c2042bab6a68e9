"""The examples of the README and of every page of the documentation run, in order, as a reader would run them.

A page is one program: its `python` blocks share a namespace, its `bash` and `console` blocks run the command line, all in one
empty folder. In a `console` block what follows a prompt is a command and the rest is what it printed. A block that cannot be run
says so in its fence, "```bash norun".
"""

import re
import shlex
import webbrowser
from pathlib import Path
from typing import NamedTuple

import pytest

from house import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page: its language, the words after it, its text, and the line where that starts."""

    language: str
    options: list[str]
    body: str
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page that are to be run."""
    found = []
    for match in FENCE.finditer(text):
        language, *options = match["info"].split() or [""]
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.MULTILINE)
        found.append(Block(language, options, body, text.count("\n", 0, match.start("body")) + 1))
    return [block for block in found if block.language in ("python", "bash", "console") and "norun" not in block.options]


def commands(block: Block) -> list[list[str]]:
    """The commands of a block, each as its list of words."""
    lines = block.body.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def run_command(words: list[str]) -> None:
    """Run `codevae …` in this process."""
    from codevae import cli

    assert words[0] == "codevae", f"only codevae itself can be run here; mark the block norun: {shlex.join(words)}"
    try:
        code = cli.main(words[1:])
    except SystemExit as end:
        code = end.code
    assert not code, f"{shlex.join(words)} ended with {code}"


def run_python(block: Block, page: Path, namespace: dict) -> None:
    """Run a block with the page's own line numbers, so that a traceback points into the page."""
    exec(compile("\n" * (block.line - 1) + block.body, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(webbrowser, "open", lambda *_args, **_kwargs: True)  # a report opens where there is a screen
    namespace = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(block, page, namespace)
        else:
            for words in commands(block):
                run_command(words)


def test_blocks_are_found():
    listed = "- item\n\n    ```bash\n    codevae train a.csv \\\n        --out b  # why\n    ```\n"
    page = f"Text.\n\n```python\nx = 1\n```\n\n{listed}\n```bash norun\nrm x\n```\n"
    python, bash = blocks(page)
    assert (python.language, python.body, python.line) == ("python", "x = 1\n", 4)
    assert commands(bash) == [["codevae", "train", "a.csv", "--out", "b"]]


def test_a_console_block_holds_what_was_printed():
    (block,) = blocks("```console\n$ codevae info runs/first\nmodalities  rna, protein\n```\n")
    assert commands(block) == [["codevae", "info", "runs/first"]]


def test_an_unclosed_fence_is_noticed():
    for page in PAGES:
        assert page.read_text(encoding="utf-8").count("\n```") % 2 == 0, page
