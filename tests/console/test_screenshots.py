"""The manual's pictures of the console are there, and can be taken again."""

from __future__ import annotations

import struct
from pathlib import Path

from dotr.cli.help import pages
from tests.console.screenshots import FOLDER, PICTURES, take


def size_of(path: Path) -> tuple[int, int]:
    """The width and height of a PNG."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:])
    return width, height


def test_the_manual_shows_every_picture_in_its_size() -> None:
    page = pages()["serve"].read_text(encoding="utf-8")
    for one in PICTURES:
        assert f"({one.name}.png)" in page
        assert size_of(FOLDER / f"{one.name}.png") == (one.width, one.height)
    assert {path.stem for path in FOLDER.glob("console-*.png")} == {one.name for one in PICTURES}


def test_the_pictures_can_be_taken_again(tmp_path: Path) -> None:
    take(tmp_path)
    for one in PICTURES:
        assert size_of(tmp_path / f"{one.name}.png") == (one.width, one.height)
        assert (tmp_path / f"{one.name}.png").stat().st_size > 20_000
