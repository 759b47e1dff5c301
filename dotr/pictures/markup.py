"""Elements of HTML as strings, and what stands around them: a page, or a fragment of a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Final, NewType

Html = NewType("Html", str)
"""A string whose every part from outside is escaped."""

STYLE: Final = Path(__file__).with_name("style.css")

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""A page fetches nothing and runs nothing, whatever it shows."""


def element(tag: str, *inner: Html | str, **attributes: str | float | bool) -> Html:
    """An element. `inner` is put in as it is: `text` escapes what came from outside.

    An attribute `class_` is `class`, `data_x` is `data-x`; True is one without a value, False none.
    """
    shown = "".join(_attribute(name, value) for name, value in attributes.items() if value is not False)
    return Html(f"<{tag}{shown}>{''.join(inner)}</{tag}>")


def _attribute(name: str, value: str | float | bool) -> str:
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'


def text(value: object) -> Html:
    """A string, escaped."""
    return Html(escape(str(value)))


def joined(parts: Iterable[Html]) -> Html:
    """Parts one after another."""
    return Html("".join(parts))


@cache
def _style() -> str:
    return STYLE.read_text(encoding="utf-8")


def fragment(*parts: Html) -> str:
    """What a notebook shows: the parts with their style, which touches nothing else."""
    return f'<div class="dotr"><style>{_style()}</style>{"".join(parts)}</div>'


def page(title: str, *parts: Html, about: Sequence[Html] = ()) -> str:
    """A file that needs nothing else. `about`: what stands beside the title."""
    head = element("header", element("h1", text(title)), *about)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{_style()}</style></head>\n"
        f'<body class="dotr page">{head}\n<main>' + "\n".join(parts) + "</main></body></html>\n"
    )


def section(title: str, *parts: Html, note: str = "") -> Html:
    """A part of a page, under a heading."""
    beside = element("span", text(note), class_="note") if note else Html("")
    return element("section", element("h2", text(title), beside), *parts)
