"""Files are written whole or not at all."""

import errno
import os
import resource
import stat

import numpy as np
import pytest

from codevae.errors import InputError
from codevae.files import write_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def half_write(target, error):
    with write_whole(target) as temporary:
        temporary.write_text("ne")
        raise error


def test_a_file_is_there_when_it_is_whole(tmp_path):
    target = tmp_path / "deep" / "er" / "a.txt"
    with write_whole(target) as temporary:
        temporary.write_text("new")
        assert not target.exists() and temporary.parent == target.parent and temporary.suffix == ".txt"
    assert target.read_text() == "new" and names(target.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_the_old_file_survives_whatever_goes_wrong(tmp_path, error):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(type(error)):
        half_write(target, error)
    assert target.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_a_disk_that_fills_up_is_an_input_error(tmp_path):
    target = tmp_path / "a.npy"
    target.write_text("old")
    with pytest.raises(InputError) as caught:
        half_write(target, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert str(caught.value) == f"cannot write {target}: No space left on device; free some space or choose another folder."
    assert target.read_text() == "old" and names(tmp_path) == ["a.npy"]


def test_a_write_that_really_stops_half_way_leaves_nothing(tmp_path):
    target = tmp_path / "a.npy"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(InputError, match=r"cannot write .*a.npy: .*choose another folder"), write_whole(target) as temporary:
            np.save(temporary, np.zeros(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == []


def test_what_is_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(InputError, match=r"cannot write .*file/a.txt: .*a part of the path is a file; choose another path"),
        write_whole(tmp_path / "file" / "a.txt"),
    ):
        pass
    with pytest.raises(InputError, match="it is a folder; give the name of a file"), write_whole(tmp_path):
        pass
    with pytest.raises(InputError, match="choose a shorter name"), write_whole(tmp_path / ("a" * 300)) as temporary:
        temporary.write_text("x")
    assert names(tmp_path) == ["file"]


def test_a_device_is_not_replaced_by_a_file():
    with pytest.raises(InputError, match="/dev/null: it is not a plain file"), write_whole("/dev/null"):
        pass
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to("real.txt")
    with write_whole(tmp_path / "link.txt") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link.txt").is_symlink() and (tmp_path / "real.txt").read_text() == "new"


def test_a_file_may_be_read_by_those_who_could_before(tmp_path):
    (tmp_path / "plain").write_text("x")
    with write_whole(tmp_path / "whole") as temporary:
        temporary.write_text("x")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode
