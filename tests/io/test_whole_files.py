"""Files that are replaced whole: what may be done with them stays."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dotr.io.outputs import FileOutput, write_whole

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


def overwrite(path: Path) -> None:
    output = FileOutput(str(path), overwrite=True)
    output.write("x")
    output.finish()


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("write", [lambda path: write_whole(path, [b"x"]), overwrite])
def test_a_new_file_is_not_executable_and_one_that_is_replaced_keeps_its_mode(
    tmp_path: Path, write: Callable[[Path], None]
) -> None:
    path = tmp_path / "a"
    write(path)
    assert path.stat().st_mode & 0o777 == 0o640
    for mode in (0o600, 0o664, 0o755):
        path.chmod(mode)
        write(path)
        assert path.stat().st_mode & 0o777 == mode
