"""Every code that refuses for safety has a line in the runbooks, and every metric there exists."""

import re
from pathlib import Path

from dotr.lang.explain import PAGES

DOCS = Path(__file__).resolve().parents[2] / "dotr" / "docs"
PAGE = (DOCS / "operate.md").read_text(encoding="utf-8")


def test_every_code_of_d5_has_a_runbook_and_no_other_has() -> None:
    rows = re.findall(r"^\| ((?:D5\d{3}(?:, )?)+) \|", PAGE, re.MULTILINE)
    listed = [code for row in rows for code in row.split(", ")]
    assert sorted(listed) == sorted(code for code in PAGES if code.startswith("D5"))


def test_metrics_to_alert_on_are_those_of_the_server() -> None:
    served = set(re.findall(r"`(dotr_\w+)`", (DOCS / "serve.md").read_text(encoding="utf-8")))
    assert set(re.findall(r"\b(dotr_\w+)\b", PAGE)) - {"dotr_e"} <= served
