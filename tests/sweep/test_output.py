"""Where a profile cannot be written, one line says so before anything is measured."""

import errno

import pytest

from pfprofile.errors import OutputError
from pfprofile.sweep.journal import file_lock


@pytest.mark.parametrize("path", ["a file/p.parquet", "a file/below/p.parquet"])
def test_a_folder_that_cannot_be_made_is_named(tmp_path, path):
    (tmp_path / "a file").write_text("")
    with pytest.raises(OutputError, match=r"cannot write .*p\.parquet.*-o"), file_lock(tmp_path / path):
        pass


def test_a_read_only_folder_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("pfprofile.sweep.journal.os.open", refuse)
    with pytest.raises(OutputError, match="Read-only file system"), file_lock(tmp_path / "p.parquet"):
        pass
