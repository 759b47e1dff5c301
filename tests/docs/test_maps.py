"""The maps of the code and of the tests name what is there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "dotr"
NAMED = re.compile(r"`([\w/.*]+(?:\.py|\.md|/))`")


def _there(name: str, home: Path) -> bool:
    """Whether there is such a file: by its path, or anywhere where only its name is given."""
    if "*" in name or (home / name).exists() or (ROOT / name).exists():
        return True
    return "/" not in name.rstrip("/") and any(home.rglob(name))


@pytest.mark.parametrize("page", [CODE / "README.md", ROOT / "tests" / "README.md"], ids=["code", "tests"])
def test_every_file_that_a_map_names_is_there(page: Path) -> None:
    names = NAMED.findall(page.read_text(encoding="utf-8"))
    assert len(names) > 10
    missing = [name for name in names if not _there(name, page.parent)]
    assert missing == []


def test_every_name_that_the_map_of_the_code_gives_is_in_the_code() -> None:
    text = (CODE / "README.md").read_text(encoding="utf-8")
    code = "\n".join(path.read_text("utf-8") for path in CODE.rglob("*.py"))
    names = set(re.findall(r"`([A-Za-z_]\w*)(?:\([^`]*\))?`", text))
    assert len(names) > 20
    defined = r"(?:(?:def|class) {0}\b|^\s*{0}\b\s*[:=]|^\s*\"{0}\")"
    assert [name for name in sorted(names) if not re.search(defined.format(name), code, re.MULTILINE)] == []


def test_every_room_is_on_the_map() -> None:
    text = (CODE / "README.md").read_text(encoding="utf-8")
    rooms = {path.name for path in CODE.iterdir() if (path / "__init__.py").exists()}
    assert [room for room in sorted(rooms) if f"`{room}/`" not in text] == []


def test_every_file_is_on_the_map_or_in_the_head_of_its_room() -> None:
    """Except where a file is a verb, a format or a step, which its name says."""
    text = (CODE / "README.md").read_text(encoding="utf-8")
    by_name = {"cli", "decode", "reference"}
    missing = []
    for path in sorted(CODE.rglob("*.py")):
        room = path.parent / "__init__.py"
        head = ast.get_docstring(ast.parse(room.read_text("utf-8"))) or "" if room.exists() else ""
        if (
            path.parent.name not in by_name
            and not path.name.startswith("__")
            and path.name not in text + head
        ):
            missing.append(str(path.relative_to(CODE)))
    assert missing == []


def test_docstrings_name_files_that_are_there() -> None:
    files = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    there = {name[i:] for name in files for i in (0, *(m.end() for m in re.finditer("/", name)))}
    there.add("dotr-submit.py")
    missing: dict[str, list[str]] = {}
    for path in sorted(CODE.rglob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        names = [name for name in re.findall(r"((?:[\w-]+/)*[\w-]+\.py)\b", text) if name not in there]
        if names:
            missing[str(path.relative_to(ROOT))] = names
    assert missing == {}


def test_no_sentence_names_one_file_twice_in_a_row() -> None:
    pages = [CODE / "README.md", ROOT / "tests" / "README.md", *sorted(CODE.rglob("*.py"))]
    twice = re.compile(r"`?((?:[\w-]+/)*[\w-]+\.py)`?(?: ?\([^)]*\))?(?:,| and|;)\s+`?\1\b")
    assert [str(page) for page in pages if twice.search(page.read_text("utf-8"))] == []
