"""What is said when the library is held wrong."""

from collections.abc import Iterable
from typing import Any


class InputError(ValueError):
    """Something given to codevae does not fit: the message names it, says what was expected, what came, and how to mend it.

    The command line turns it into one line and exit code 2; every other exception is a fault of ours.
    """


class Diverged(ArithmeticError):
    """Training met a number that is not finite; the last good weights were kept."""


class Interrupted(KeyboardInterrupt):
    """A run was asked to stop; it finished its step, wrote its state, and can be resumed."""


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Names for a message: quoted, separated, and cut when there are many."""
    names = [str(name) for name in names]
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "") if names else "none"
