"""Objects that remember how they were made, so that a run's config can say it and `load` can do it again.

A `Recorded` object is written as its class and its arguments; a `functools.partial` of somebody's own class likewise. Nothing
is pickled: what a config may name is a class and plain values, and by default only classes of codevae itself are imported.
"""

import functools
import importlib
import inspect
from typing import Any

from codevae.errors import InputError


class Recorded:
    """Mixin: keeps the arguments of the outermost constructor, and lets automatic ones be replaced by what they became."""

    _arguments: dict[str, Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" not in cls.__dict__:
            return
        construct = cls.__init__
        signature = inspect.signature(construct)

        @functools.wraps(construct)
        def recording(self, *args, **kwargs):
            if "_arguments" not in self.__dict__:
                bound = signature.bind(self, *args, **kwargs)
                bound.apply_defaults()
                self.__dict__["_arguments"] = dict(list(bound.arguments.items())[1:])
            construct(self, *args, **kwargs)

        cls.__init__ = recording  # type: ignore[method-assign]

    def settle(self, **values: Any) -> None:
        """Replace automatic arguments ("auto", None) by what they came to mean, in the object and in its record."""
        for name, value in values.items():
            setattr(self, name, value)
            self.note(name, value)

    def note(self, name: str, value: Any) -> None:
        """The same in the record alone, for an argument that the object keeps under another name; a subclass may not have it."""
        if name in self._arguments:
            self._arguments[name] = value


def describe(thing: Any) -> Any:
    """The plain form (dicts, lists, numbers, text) of a recorded object and of everything inside it."""
    if isinstance(thing, Recorded):
        return {"class": path_of(type(thing)), "arguments": describe(thing.__dict__.get("_arguments", {}))}
    if isinstance(thing, functools.partial):
        if thing.args:
            raise InputError(f"functools.partial({path_of(thing.func)}, …): give its arguments by name, so that the config can keep them.")
        return {"partial": path_of(thing.func), "arguments": describe(thing.keywords)}
    if isinstance(thing, dict):
        return {str(key): describe(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [describe(value) for value in thing]
    if hasattr(thing, "tolist"):
        return thing.tolist()
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    return {"unrecorded": path_of(type(thing))}


def rebuild(plain: Any, trust: bool = False) -> Any:
    """The object that `describe` described; classes outside codevae are imported only if `trust`."""
    if isinstance(plain, list):
        return [rebuild(value, trust) for value in plain]
    if not isinstance(plain, dict):
        return plain
    if "class" in plain and "arguments" in plain:
        return find(plain["class"], trust)(**rebuild(plain["arguments"], trust))
    if "partial" in plain and "arguments" in plain:
        return functools.partial(find(plain["partial"], trust), **rebuild(plain["arguments"], trust))
    if "unrecorded" in plain:
        raise InputError(
            f"the config cannot rebuild a bare {plain['unrecorded']}: pass it again, load(run, modules={{name: (encoder, decoder)}}), "
            "or train with functools.partial(YourNet, …) instead of an instance."
        )
    return {key: rebuild(value, trust) for key, value in plain.items()}


def path_of(cls: Any) -> str:
    """The import path of a class or function."""
    return f"{cls.__module__}.{cls.__qualname__}"


def find(path: str, trust: bool = False) -> Any:
    """The class at an import path; without `trust` a recorded class of codevae, not whatever else its modules happen to import."""
    module, _, name = path.rpartition(".")
    foreign = InputError(f"the config names {path}, which is not part of codevae: read it, and if you trust it, load(run, trust=True).")
    if not trust and module.split(".")[0] != "codevae":
        raise foreign
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the config names {path}, which cannot be imported here ({error}): is it on the Python path?") from error
    if not trust and not (isinstance(found, type) and issubclass(found, Recorded)):
        raise foreign
    return found
