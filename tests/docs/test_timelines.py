"""The pictures of the tutorial are what their script makes, and each is shown on a page."""

import pytest

from tests.docs.timelines import DOCS, PICTURES, svg


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_script_makes(name: str) -> None:
    text = (DOCS / f"tutorial-{name}.svg").read_text(encoding="utf-8")
    assert text == svg(PICTURES[name])
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_every_picture_is_shown_and_has_a_script() -> None:
    pictures = {path.name for path in DOCS.glob("*.svg")}
    assert pictures == {f"tutorial-{name}.svg" for name in PICTURES}
    shown = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert [name for name in sorted(pictures) if f"]({name})" not in shown] == []
