"""From words to settings: jsonargparse makes options, help and YAML from signatures; here is what it does not do.

Flags may be written with hyphens, switches without a value (`--overwrite`, `--no-progress`), a method's own arguments without its
name (`--rho 0.4` for `--method.rho 0.4`), and settings by modality as `--likelihood rna=NegativeBinomial`, again and again.
"""

import argparse
import inspect
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from jsonargparse import ArgumentParser, Namespace

from codevae.errors import InputError

BY_NAME = ("likelihood", "kind", "private", "picture")
"""Options that take NAME=VALUE, and may be given several times."""


class Parser(ArgumentParser):
    """A jsonargparse parser whose help shows flags with hyphens and whose errors are one line."""

    appendix = ""

    def format_help(self, formatter: Any = None) -> str:
        text = re.sub(r"--[a-z][a-z_.]*", lambda found: found[0].replace("_", "-"), super().format_help(formatter))
        return f"{text}\n{self.appendix}" if self.appendix else text

    def error(self, message: str, ex: Any = None) -> Any:
        raise InputError(_one_line(message))


def parser(verb: str, about: str) -> Parser:
    """An empty parser for a verb."""
    return Parser(prog=f"codevae {verb}", description=about, exit_on_error=False)


def parse(made: Parser, words: Sequence[str], methods: dict[str, Any] | None = None) -> Namespace:
    """Parse, after the conveniences above; whatever is wrong is one line."""
    try:
        return made.parse_args(_conveniences(made, list(words), methods or {}))
    except argparse.ArgumentError as error:
        raise InputError(_one_line(str(error))) from error


def add(made: Parser, function: Callable, skip: Sequence[str] = ()) -> None:
    """Options for the arguments of a function, with their documentation."""
    made.add_function_arguments(function, skip=set(skip))


def arguments_of(classes: dict[str, Any], made: Parser) -> str:
    """The documented arguments of some classes, as they are written on the command line beside the options that are there."""
    taken = made._option_string_actions
    lines = []
    for name, cls in classes.items():
        defaults = {key: parameter.default for key, parameter in inspect.signature(cls).parameters.items()}
        lines.append(f"arguments of --method {name}:")
        for line in (inspect.getdoc(cls) or "").partition("Arguments:\n")[2].splitlines():
            key, colon, rest = line.strip().partition(": ")
            known = bool(colon) and key in defaults
            flag = f"--method.{key}" if f"--{key}" in taken else f"--{key}"
            lines.append(f"  {flag.replace('_', '-')}: {rest}" if known else f"    {line.strip()}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _conveniences(made: Parser, words: list[str], methods: dict[str, Any]) -> list[str]:
    known = {option.lstrip("-") for option in made._option_string_actions}
    switches = {flag.lstrip("-") for flag, action in made._option_string_actions.items() if getattr(action, "_typehint", None) is bool}
    name = next((_value(words, index) for index, word in enumerate(words) if re.match(r"--method(=|$)", word)), "CoDEVAE")
    if methods and name not in methods and "." not in name and not name.endswith((".yaml", ".json")):
        raise InputError(f"--method: there is no method {name!r}; the methods are {', '.join(methods)}.")
    own = set(inspect.signature(methods[name]).parameters) if name in methods else set()
    pairs: dict[str, dict[str, str]] = {}
    result: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word == "--":
            result += words[index - 1 :]
            break
        if not word.startswith("--"):
            result.append(word)
            continue
        flag, given, value = word[2:].partition("=")
        flag = flag.replace("-", "_") if "." not in flag or flag.startswith("method.") else flag
        if flag in BY_NAME and flag in known:
            if not given:
                value, index = (words[index] if index < len(words) else ""), index + 1
            key, equals, inner = value.rpartition("=") if flag != "likelihood" else value.partition("=")
            if not equals or not key or not inner:
                raise InputError(f"--{flag}: expected NAME=VALUE, got {value!r}.")
            pairs.setdefault(flag, {})[key] = inner
            continue
        if flag not in known and flag in own:
            flag = f"method.{flag}"
        if flag.startswith("no_") and flag[3:] in switches:
            flag, given, value = flag[3:], "=", "false"
        elif flag in switches and not given and (index == len(words) or words[index] not in ("true", "false")):
            given, value = "=", "true"
        result.append(f"--{flag}{given}{value}")
    return result + [part for flag, values in pairs.items() for part in (f"--{flag}", json.dumps(values))]


def _value(words: list[str], index: int) -> str:
    """The value of the flag at a place, written `--flag value` or `--flag=value`."""
    _, given, value = words[index].partition("=")
    return value if given else words[index + 1] if index + 1 < len(words) else ""


def _one_line(message: str) -> str:
    text = " ".join(message.replace("\n", " ").split())
    text = re.sub(r"<class '(\w+)'>", r"\1", text)
    text = re.sub(r'Parser key "([^"]+)":', lambda found: f"--{found[1].replace('_', '-')}:", text)
    text = re.sub(r"unrecognized arguments: (--\S+)", lambda found: f"there is no option {found[1].replace('_', '-')}", text)
    return f"{text.rstrip('.')}. --help lists what can be said."
