"""`dotr docs`: every page of manual and reference is in the site, nothing is fetched, links lead."""

from __future__ import annotations

import re
import subprocess
import sys
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml
from click.testing import CliRunner

import dotr
import dotr.rdflib
import dotr.spark
from dotr.cli.check import command as check
from dotr.cli.help import pages, write_pages
from dotr.cli.main import VERBS
from dotr.lang.explain import PAGES

HOME = Path(dotr.__file__).parent / "docs"


def test_the_site_has_every_page_and_needs_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dotr", "docs", "-o", "site"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert again.returncode == 5
    for name in (*pages(), "diagnostics", "commands", "api", "patterns"):
        assert (tmp_path / "site" / f"{name}.html").exists(), name
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'<(?:script|link|img|iframe)[^>]+(?:src|href)=["\']?https?:', index)
    assert list((tmp_path / "site" / "search").glob("search_index*"))
    assert dead_links(tmp_path / "site") == []
    for name, page in pages().items():
        shown = (tmp_path / "site" / f"{name}.html").read_text(encoding="utf-8")
        assert len(re.findall("<h2", shown)) == len(headings(page)), name


def headings(page: Path) -> list[str]:
    """Those of the second level, outside of code."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"^## .*", text, flags=re.M)


def test_the_shim_of_the_search_is_the_one_of_npm() -> None:
    head, _, content = (HOME / "iframe-worker.js").read_text(encoding="utf-8").partition(" */\n")
    assert "iframe-worker 1.0.4" in head
    assert "Permission is hereby granted, free of charge" in head
    found = sha256(content.encode()).hexdigest()
    assert found == "e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609"


def dead_links(site: Path) -> list[str]:
    """Links of built pages to a file, or to a place in it, that is not there."""
    texts = {
        page: page.read_text(encoding="utf-8") for page in site.glob("*.html") if page.name != "404.html"
    }
    places = {page.name: set(re.findall(r'\b(?:id|name)="?([^"\s>]+)', text)) for page, text in texts.items()}
    dead = []
    for page, text in texts.items():
        for link in re.findall(r'\bhref="?([^"\s>]+)', text):
            target, _, place = unescape(link).partition("#")
            if ":" in target:
                continue
            there = not target or (site / target).exists()
            named = places.get(target or page.name)
            if not there or (place and named is not None and unquote(place) not in named):
                dead.append(f"{page.name}: {link}")
    return dead


def named_in(nav: list[Any]) -> list[str]:
    """The pages of a navigation."""
    found: list[str] = []
    for entry in nav:
        for value in entry.values():
            found += named_in(value) if isinstance(value, list) else [value]
    return found


def test_the_navigation_names_every_page_once(tmp_path: Path) -> None:
    write_pages(tmp_path)
    nav = yaml.safe_load((HOME / "site.yml").read_text("utf-8"))["nav"]
    assert sorted(named_in(nav)) == sorted(path.name for path in tmp_path.glob("*.md"))
    parts = ["Begin", "How to", "Reference", "Operate", "Contribute", "From other engines"]
    assert [name for entry in nav for name in entry] == parts


def test_links_between_pages_lead_somewhere(tmp_path: Path) -> None:
    write_pages(tmp_path)
    for page in tmp_path.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (tmp_path / target).exists(), f"{page.name}: {target}"


def test_the_reference_has_every_code_and_every_command(tmp_path: Path) -> None:
    write_pages(tmp_path)
    diagnostics = (tmp_path / "diagnostics.md").read_text(encoding="utf-8")
    assert all(f"## {code}: " in diagnostics for code in PAGES)
    commands = (tmp_path / "commands.md").read_text(encoding="utf-8")
    assert all(f"## dotr {verb}\n" in commands for verb in VERBS)
    api = (tmp_path / "api.md").read_text(encoding="utf-8")
    assert "### Engine.push\n" in api
    for module in (dotr, dotr.spark, dotr.rdflib):
        for name in module.__all__:
            assert f"## {module.__name__}.{name}\n" in api or not callable(getattr(module, name)), name
    bare = re.findall(r"^##+ ([\w.]+)\n\n```python\n.*\n```\n\n\n", api, flags=re.MULTILINE)
    assert bare == [], "public, and without a docstring"


def test_all_codes_are_listed_with_their_titles() -> None:
    listed = CliRunner().invoke(check, ["--explain", "--list"], standalone_mode=False).output.splitlines()
    assert [line.partition("  ")[0] for line in listed] == list(PAGES)
