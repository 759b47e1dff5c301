"""What users read is plain English: words that were purged stay away (docs/contributing.md has the list)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dotr.cli.main import VERBS, group

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "dotr" / "docs").glob("*.md")),
    *sorted((ROOT / "dotr" / "lang" / "pages").glob("*.txt")),
    *(ROOT / "dotr" / "lang" / "language.md", ROOT / "README.md", ROOT / "patterns" / "README.md"),
    *sorted((ROOT / "examples").glob("*/README.md")),
]
GENERATED = {"clauses.md"}  # of the names and heads of test cases
PURGED = {
    r"\bbehind\b": "after",
    r"\b(?:is|are|was|were|been) (?:said|told)\b(?! (?:apart|once))": "reported, stated",
    r"\b(?:is|are) looked at\b": "evaluated",
    r"\bsees a tick\b": "runs",
    r"\bholds no more\b": "has ended",
    r"\bno more from\b": "ends at",
    r"\bwhat is not so\b": "what does not hold",
    r"\bstretch(?:es)? of time\b": "period",
    r"\ba text (?:that|is|of)\b": "string",
    r"\[what lasts\]": "state",
    r"\btext becomes\b": "a run writes",
}
FINE = (
    "The rule behind the fire",
    "a visitor is left behind",
    "behind-proxy",
    "behind a proxy",
    "g} s behind",
    "unless told otherwise",
)
"""Where such words are right, or are examples."""


def purged(text: str) -> list[str]:
    """What `text` has of the purged words, with what is around each."""
    for fine in FINE:
        text = text.replace(fine, " ")
    text = " ".join(text.split())
    return [
        f"{text[max(0, found.start() - 40) : found.end() + 20]!r}: write {word}"
        for pattern, word in PURGED.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_have_no_purged_word(page: Path) -> None:
    if page.name in GENERATED or page.name == "contributing.md":
        pytest.skip("lists these words, or is made of test cases")
    assert purged(page.read_text(encoding="utf-8")) == []


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=name)
    yield name, command, context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


def test_no_help_has_a_purged_word() -> None:
    found = {name: purged(one.get_help(context)) for name, one, context in commands(group, "dotr")}
    assert len(found) > len(VERBS)
    assert {name: words for name, words in found.items() if words} == {}


def written(node: ast.expr) -> str | None:
    """A string as the source has it, with `…` for what is put in; None for another expression."""
    match node:
        case ast.JoinedStr(values=parts):
            return "".join(written(part) or "…" for part in parts)
        case ast.Constant(value=str(text)):
            return text
        case _:
            return None


def messages(tree: ast.AST) -> Iterator[str]:
    """The strings of diagnostics: arguments of calls that have a code, and what is called a hint or note."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            texts = [text for one in given if (text := written(one)) is not None]
            if any(re.fullmatch(r"D\d{4}", text) for text in texts):
                yield from texts
        if isinstance(node, ast.Assign) and {"hint", "note"} & {
            target.id for target in node.targets if isinstance(target, ast.Name)
        }:
            yield ast.unparse(node.value)


def test_messages_are_found() -> None:
    call = 'UsageError.of("D4114", f"an {x} stands behind", hint="after it")\nhint = "is looked at"'
    found = sorted(text for text in messages(ast.parse(call)) if purged(text))
    assert found == [
        "'is looked at'",
        "an … stands behind",
    ]


def test_no_message_has_a_purged_word() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {text}": purged(text)
        for path in sorted((ROOT / "dotr").rglob("*.py"))
        for text in messages(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert len(found) > 500
    assert {place: words for place, words in found.items() if words} == {}


def test_the_page_for_contributors_lists_what_to_write() -> None:
    page = (ROOT / "dotr" / "docs" / "contributing.md").read_text(encoding="utf-8")
    for word in ("string", "reported", "after", "evaluate", "holds", "period", "state"):
        assert re.search(rf"^\| [^|]*\b{word}\b[^|]* \|", page, re.MULTILINE), word
