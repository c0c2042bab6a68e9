"""The rules of the house that a machine can keep: where a module may look, what a file may hold, what an import may cost."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path

import pytest

from house import ROOT, functions, length, sources

ORDER = [
    "version",
    "errors",
    "files",
    "axes",
    "random",
    "record",
    "batch",
    "subsets",
    "distributions",
    "consensus",
    "priors",
    "subset_weights",
    "likelihoods",
    "networks",
    "modality",
    "methods",
    "model",
    "data",
    "training",
    "samplers",
    "metrics",
    "imputation",
    "tuning",
    "estimator",
    "experiments",
    "report",
    "cli",
]
"""The modules of codevae from top to bottom: one imports only from those before it (docs/architecture.md draws them)."""

FOR_TYPES_ONLY: set[tuple[str, str]] = set()
"""Imports against the order that stand under `if TYPE_CHECKING:`, as (module, what it names); few, and each one meant."""

HEAVY = {"torch", "pandas", "lightning_fabric", "matplotlib", "sklearn"}

SOURCES = sources()
every_file = pytest.mark.parametrize("path", SOURCES, ids=str)


@cache
def distributions() -> dict[str, list[str]]:
    """Which distributions install which top-level module; slow to ask."""
    return dict(metadata.packages_distributions())


def dotted(path: Path) -> str:
    """src/codevae/methods/base.py → codevae.methods.base"""
    parts = path.with_suffix("").relative_to("src").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in SOURCES}


def part(module: str) -> str:
    """The module or package of ORDER that a module belongs to; "" is codevae's own table of contents."""
    return module.partition(".")[2].partition(".")[0]


def for_types(tree: ast.Module) -> set[ast.AST]:
    """The nodes that only a type checker reads."""
    conditions = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    checking = [node for node in conditions if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")]
    return {inner for node in checking for statement in node.body for inner in ast.walk(statement)}


@cache
def imports(module: str) -> dict[str, set[str]]:
    """The modules of codevae that a module imports, anywhere in it: those that are "run", and those "for types" only."""
    tree = ast.parse(SOURCES[MODULES[module]])
    typing = for_types(tree)
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    found: dict[str, set[str]] = {"run": set(), "for types": set()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            names = [f"{source}.{alias.name}" if f"{source}.{alias.name}" in MODULES else source for alias in node.names]
        else:
            continue
        found["for types" if node in typing else "run"] |= {name for name in names if name.split(".")[0] == "codevae"}
    return found


def against_the_order(module: str, imported: set[str]) -> set[tuple[str, str]]:
    """The imports that do not point to an earlier part, nor to the module's own."""
    own = part(module)
    others = {name for name in imported if part(name) != own}
    return {(module, name) for name in others if part(name) not in ORDER[: ORDER.index(own)]}


def test_every_module_has_a_place():
    unplaced = {part(module) for module in MODULES} - {"", *ORDER}
    assert not unplaced, f"place {sorted(unplaced)} in ORDER (tests/test_house.py), and draw it in docs/architecture.md"


def test_the_documentation_draws_the_tree_as_it_is():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    drawn = re.findall(r"^ {6}(?!__init__)(\w+)(?:\.py|/) ", page, re.MULTILINE)
    assert drawn == [name for name in ORDER if name in map(part, MODULES)]


@pytest.mark.parametrize("module", [module for module in MODULES if part(module) in ORDER])
def test_imports_point_upward(module):
    assert not against_the_order(module, imports(module)["run"])


def test_imports_for_types_against_the_order_are_listed():
    placed = [module for module in MODULES if part(module) in ORDER]
    assert {pair for module in placed for pair in against_the_order(module, imports(module)["for types"])} == FOR_TYPES_ONLY


@pytest.mark.parametrize("package", [name for name in ORDER if f"src/codevae/{name}/__init__.py" in map(str, SOURCES)])
def test_a_package_has_no_cycle_and_its_base_comes_first(package):
    files = {module for module in MODULES if part(module) == package}
    inside = {module: imports(module)["run"] & files for module in files}
    tuple(TopologicalSorter(inside).static_order())  # raises CycleError, which shows the cycle
    assert not inside.get(f"codevae.{package}.base")


@every_file
def test_third_parties_are_declared(path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "dev" for line in lines]
    declared = {re.match(r"[\w-]+", line).group() for line in [*project["dependencies"], *extras]}
    nodes = list(ast.walk(ast.parse(SOURCES[path])))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    foreign = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"codevae"}
    packages = {name: {other.lower() for other in distributions().get(name, [name])} for name in foreign}
    assert not {name for name, candidates in packages.items() if not candidates & declared}


@every_file
def test_a_file_is_one_idea(path):
    assert len(SOURCES[path].splitlines()) <= 300


@every_file
def test_a_function_fits_on_a_screen(path):
    assert not {function.name: length(function) for function in functions(SOURCES[path]) if length(function) > 60}


def unwanted(node: ast.AST) -> str | None:
    """What is wrong with a node of the syntax tree, if anything is."""
    match node:
        case ast.Assert():
            return "assert: raise an InputError that says what was expected, what came, and the fix"
        case ast.ExceptHandler(type=None):
            return "a bare except: name what is expected to go wrong"
        case ast.Import(names=names) if {alias.name.split(".")[0] for alias in names} & {"pickle", "joblib"}:
            return "pickle: it runs what it reads; weights are safetensors, everything else is plain text"
        case ast.ImportFrom(module="pickle" | "joblib"):
            return "pickle: it runs what it reads; weights are safetensors, everything else is plain text"
        case ast.Attribute(value=ast.Name(id="torch"), attr="load" | "save"):
            return "torch.load and torch.save are pickle: use safetensors"
        case ast.ImportFrom(module="torch", names=names) if {alias.name for alias in names} & {"load", "save"}:
            return "torch.load and torch.save are pickle: use safetensors"
    return None


@every_file
def test_what_the_sources_do_without(path):
    found = {node.lineno: unwanted(node) for node in ast.walk(ast.parse(SOURCES[path])) if unwanted(node)}
    assert not found


@pytest.mark.parametrize("text", ["assert x", "try: x\nexcept: y", "import pickle", "from joblib import dump", "torch.load(x)"])
def test_what_is_unwanted_is_found(text):
    assert any(map(unwanted, ast.walk(ast.parse(text))))


def imported_by(code: str) -> set[str]:
    """What Python has loaded after running `code` in a process of its own."""
    ending = "import sys; print('\\n' + ' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{ending}"], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(run.stdout.splitlines()[-1].split())


def test_importing_codevae_is_light():
    assert not HEAVY & imported_by("import codevae")


def test_help_is_light():
    assert not HEAVY & imported_by("from codevae import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass")


PRIVATE = re.compile(r"/wor[k]/|/home/\w|/Users/\w|index[-_]ur[l]|(?<!scope=\")\bsess[i]ons?\b", re.IGNORECASE)
"""A path or package index of one machine, or talk of how a file came about (written so that it does not find itself)."""


def test_no_file_names_the_place_it_was_made_in():
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    git = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if git.returncode:
        pytest.skip("this copy of the sources is not a git repository, so what belongs to it is not known")
    found = {}
    for name in git.stdout.splitlines():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):  # pictures and data; files removed but not yet committed
            continue
        found |= {f"{name}:{number}": line.strip() for number, line in enumerate(text.splitlines(), 1) if PRIVATE.search(line)}
    assert not found
