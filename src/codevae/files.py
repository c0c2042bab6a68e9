"""Files are written whole or not at all: beside their place first, then moved into it."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from codevae.errors import InputError

_ADVICE = {
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENOTDIR: "a part of the path is a file; choose another path",
    errno.EEXIST: "a part of the path is a file; choose another path",
    errno.ENAMETOOLONG: "choose a shorter name",
}


@contextmanager
def write_whole(path: str | Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and vanishes when it does not.

    Whoever reads `path` finds the old file or the new one, never a half; a full disk or a forbidden folder is an `InputError`.
    The folder is made where there is none. The temporary path keeps the name's ending, so that writers which choose a format by
    it, or append it, are at ease.

    Arguments:
        path: where the file is to be; a file that is there already is replaced.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "notes" / "first.txt"
        >>> with write_whole(target) as temporary:
        ...     _ = temporary.write_text("whole")
        >>> target.read_text()
        'whole'
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    temporary = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    try:
        if target.exists() and not target.is_file():
            raise InputError(
                f"cannot write {path}: it is {'a folder' if target.is_dir() else 'not a plain file'}; give the name of a file."
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _settle(temporary)
        os.replace(temporary, target)
        _settle(target.parent)
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "free some space or choose another folder")
        raise InputError(f"cannot write {path}: {error.strerror or error}; {advice}.") from error
    finally:
        with suppress(OSError):  # the folder may be what is wrong
            temporary.unlink(missing_ok=True)


def _settle(path: Path) -> None:
    """Wait until a file, or what a folder lists, is on the disk and would survive a power cut."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open a folder
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
