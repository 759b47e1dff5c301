"""`python -m tests.console.screenshots`: the pictures of the manual, made again.

The building of `examples/` is served, its morning is posted, and a Chromium takes what it sees of the
console. The gallery has the page of `dotr show` for each situation. A test holds that the manual's pictures
are there, of the size that they are taken in; pixels are not compared.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from tests.console.browser import browser
from tests.serve.servers import serving

ROOT = Path(__file__).resolve().parents[2]
BUILDING = ROOT / "examples" / "building"
FOLDER = ROOT / "dotr" / "docs"


class Picture(NamedTuple):
    """A picture: its name, the view, what is done there before it is taken, and the screen."""

    name: str
    view: str
    steps: str = ""
    width: int = 1200
    height: int = 760
    scheme: str = "light"


_OPEN_FIRE: Final = """
await page.locator('.row', {hasText: 'Fire'}).first().click();
await page.locator('.proof').first().waitFor();
await page.locator('.proof').getByText('morning').first().waitFor({timeout: 3000}).catch(() => {});
"""

PICTURES: Final = (
    Picture("console-events", "", _OPEN_FIRE),
    Picture("console-rules", "rules"),
    Picture("console-plan", "plan"),
    Picture("console-narrow", "", _OPEN_FIRE, 400, 800, "dark"),
)


class Situation(NamedTuple):
    """A picture of the gallery: the example, its rules and data, and the event whose proof is open."""

    example: str
    rules: str
    data: tuple[str, ...]
    rule: str


GALLERY: Final = (
    Situation("building", "building.dotr", ("morning.ttl",), "Fire"),
    Situation("fraud", "fraud.dotr", ("payments.csv", "--map", "payments.map"), "TriedOut"),
    Situation("fleet", "fleet.dotr", ("positions.csv", "--map", "positions.map"), "Entered"),
    Situation("factory", "factory.dotr", ("tags.jsonl", "--map", "tags.map"), "Blind"),
    Situation("web", "web.dotr", ("clicks.jsonl", "--map", "clicks.map"), "SlowPage"),
    Situation("security", "security.dotr", ("events.jsonl", "--map", "events.map"), "Intrusion"),
)
GALLERY_SIZE: Final = (1100, 900)


def take_gallery(folder: Path) -> None:
    """Take the pictures of the gallery into a folder, as gallery-EXAMPLE.png."""
    width, height = GALLERY_SIZE
    with TemporaryDirectory() as work, browser() as chromium:
        for one in GALLERY:
            page = Path(work) / f"{one.example}.html"
            command = [sys.executable, "-m", "dotr", "show", one.rules, *one.data, "-o", str(page)]
            subprocess.run(command, cwd=ROOT / "examples" / one.example, check=True, capture_output=True)
            options: dict[str, Any] = {"viewport": {"width": width, "height": height}}
            chromium.open(page.as_uri(), colorScheme="light", **options)
            chromium.run("await page.locator('summary', {hasText: rule}).first().click();", rule=one.rule)
            path = str(folder / f"gallery-{one.example}.png")
            chromium.run("await page.screenshot({path, animations: 'disabled'});", path=path)


def take(folder: Path) -> None:
    """Take every picture of the console into a folder."""
    rules = (BUILDING / "building.dotr").read_text(encoding="utf-8")
    morning = (BUILDING / "morning.ttl").read_bytes()
    with TemporaryDirectory() as work, browser() as chromium:
        for name in ("building.ttl", "places.dlog"):
            (Path(work) / name).write_bytes((BUILDING / name).read_bytes())
        with serving(Path(work), rules) as server:
            answer = server.client.post(
                "/v1/streams/input?wait=committed", content=morning, headers={"Content-Type": "text/turtle"}
            )
            assert answer.json()["state"] == "committed", answer.text
            for one in PICTURES:
                options: dict[str, Any] = {"viewport": {"width": one.width, "height": one.height}}
                chromium.open(f"{server.url}/#/{one.view}", colorScheme=one.scheme, **options)
                chromium.run("await page.locator('main h1, main .row').first().waitFor();" + one.steps)
                chromium.run("await page.waitForTimeout(400);")
                path = str(folder / f"{one.name}.png")
                chromium.run("await page.screenshot({path, animations: 'disabled'});", path=path)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    take_gallery(target)
    take(target)
