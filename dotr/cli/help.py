"""`dotr help TOPIC`: the manual, offline.

Place:   reads the pages that ship in dotr/docs; `languages` is the reference beside the parsers.
"""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown

_PACKAGE = Path(__file__).resolve().parents[1]
_LANGUAGES = _PACKAGE / "lang" / "language.md"


def pages() -> dict[str, Path]:
    """Topic → its page, in order of name."""
    found = {path.stem: path for path in (_PACKAGE / "docs").glob("*.md")}
    return dict(sorted({**found, "languages": _LANGUAGES}.items()))


def _title(page: Path) -> str:
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ")


@click.command(short_help="The manual, offline.")
@click.argument("topic", required=False)
def command(topic: str | None) -> None:
    """Print a page of the manual; without TOPIC, the list of pages."""
    known = pages()
    if topic is None:
        width = max(map(len, known))
        for name, page in known.items():
            click.echo(f"{name.ljust(width)}  {_title(page)}")
        return
    if topic not in known:
        near = get_close_matches(topic, known, 1)
        hint = f"did you mean `{near[0]}`?" if near else "`dotr help` lists the topics"
        raise click.UsageError(f"there is no page `{topic}`; {hint}")
    text = known[topic].read_text(encoding="utf-8")
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        click.echo(text, nl=False)
