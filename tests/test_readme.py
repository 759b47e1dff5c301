"""What the README shows is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """The fenced block behind `<!-- mark -->`."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w*\n(.*?)```", README, re.DOTALL)
    assert found, f"the README has no block marked `{mark}`"
    return found[1]


def test_the_first_screen_is_what_the_demo_prints() -> None:
    ran = subprocess.run([sys.executable, "-m", "dotr", "demo"], capture_output=True, text=True, check=True)
    assert block("output: demo") == ran.stdout


def test_excerpts_stand_in_the_files_they_name() -> None:
    names = re.findall(r"<!-- excerpt: (\S+) -->", README)
    assert names
    for name in names:
        assert block(f"excerpt: {name}") in (ROOT / name).read_text(encoding="utf-8")


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if "://" not in target:
            assert (ROOT / target).exists(), target
