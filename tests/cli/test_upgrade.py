"""`dotr deploy --check-upgrade`: what the next feed would make of a deployment, without touching it."""

from __future__ import annotations

import gzip
import hashlib
import sqlite3
from pathlib import Path

from dotr.service.journal import DATABASE, FORMAT
from tests.cli.conftest import Dotr

OLD = Path(__file__).resolve().parents[1] / "service" / "format7.db.gz"


def digest(folder: str) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).iterdir())
        if not path.name.endswith(("-wal", "-shm"))
    }


def old_deployment(folder: str) -> None:
    Path(folder).mkdir()
    (Path(folder) / DATABASE).write_bytes(gzip.decompress(OLD.read_bytes()))


def test_a_deployment_of_this_version_stays_as_it_is(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    dotr("feed", "events")
    before = digest(".dotr")
    ran = dotr("deploy", "--check-upgrade")
    assert ran.code == 0
    assert ran.out.splitlines() == [f"format {FORMAT}: stays as it is", "= Fire  keeps what it remembers"]
    assert digest(".dotr") == before


def test_an_older_format_is_converted_in_the_copy_alone(dotr: Dotr) -> None:
    old_deployment("old")
    before = digest("old")
    ran = dotr("deploy", "--check-upgrade", "--dir", "old")
    assert ran.code == 0
    assert ran.out.startswith(f"format 7: the next feed converts it to {FORMAT}")
    assert "~" not in ran.out
    assert digest("old").items() >= before.items()


def test_a_newer_format_is_refused(dotr: Dotr) -> None:
    dotr("deploy", "fire.dotr")
    with sqlite3.connect(Path(".dotr") / DATABASE) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    connection.close()
    ran = dotr("deploy", "--check-upgrade")
    assert (ran.code, "D5203" in ran.err) == (4, True)


def test_no_deployment_is_reported(dotr: Dotr) -> None:
    ran = dotr("deploy", "--check-upgrade", "--dir", "nowhere")
    assert (ran.code, "D5201" in ran.err) == (3, True)
    assert not Path("nowhere").exists()


def test_rules_and_the_check_exclude_each_other(dotr: Dotr) -> None:
    assert (dotr("deploy").code, dotr("deploy", "fire.dotr", "--check-upgrade").code) == (2, 2)
    assert "D4147" in dotr("deploy").err
