"""The manual's site in a browser: it is opened from a file, and its search finds pages there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .browser import browser


def test_the_search_of_the_manual_works_from_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dotr", "docs", "-o", "site"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    with browser() as seen:
        seen.open((tmp_path / "site" / "index.html").as_uri())
        seen.run(
            "page.setDefaultTimeout(30000); await page.locator('.md-search__input').first().fill('webhook');"
        )
        first = seen.text(".md-search-result__item a h1, .md-search-result__item a h2")
        links = seen.run(
            "return page.locator('.md-search-result__link').evaluateAll((all) => all.map((one) => one.href));"
        )
        notes = seen.notes()
    assert first
    assert any(link.startswith("file:") and "serve.html" in link for link in links), links
    assert notes["errors"] == []
    assert [url for url in notes["requests"] if url.startswith("http")] == []
