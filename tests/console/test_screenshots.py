"""The manual's pictures of the console are there, and can be taken again."""

from __future__ import annotations

import struct
from pathlib import Path

from dotr.cli.help import pages
from tests.console.screenshots import FOLDER, GALLERY, GALLERY_SIZE, PICTURES, take, take_gallery


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


def test_the_gallery_shows_every_situation_with_a_small_picture() -> None:
    page = pages()["gallery"].read_text(encoding="utf-8")
    pictures = {path.stem for path in FOLDER.glob("gallery-*.png")}
    assert pictures == {f"gallery-{one.example}" for one in GALLERY}
    for one in GALLERY:
        picture = FOLDER / f"gallery-{one.example}.png"
        assert f"({picture.name})" in page
        assert f"`examples/{one.example}`" in page
        assert size_of(picture) == GALLERY_SIZE
        assert picture.stat().st_size <= 150_000


def test_the_pictures_of_the_gallery_can_be_taken_again(tmp_path: Path) -> None:
    take_gallery(tmp_path)
    for one in GALLERY:
        assert size_of(tmp_path / f"gallery-{one.example}.png") == GALLERY_SIZE
