"""What a short command loads: the start of `dotr run` does not grow by libraries that it does not use."""

import subprocess
import sys
from pathlib import Path

FIRE = Path(__file__).resolve().parents[2] / "examples" / "fire"

LIBRARIES = {
    *("numpy", "owlrl", "pandas", "pyarrow", "pygls", "pyspark", "rdflib", "rich", "yaml"),
    *("asyncio", "concurrent", "ctypes", "email", "http", "logging", "multiprocessing", "sqlite3", "socket"),
    *("shutil", "subprocess", "tempfile", "xml", "zipfile", "zoneinfo"),
}
ROOMS = {
    *("api", "batch", "explain", "knowledge_base", "rdflib", "service", "testing", "windows"),
    *("lasting.instants", "io.dumps", "io.tables.mapping", "io.tables.rows", "reference.oracle"),
}


def _loaded(*arguments: str) -> set[str]:
    text = (
        "import sys\nfrom dotr.cli.main import run\n"
        f"status = run({list(arguments)!r})\nprint(*sys.modules, file=sys.stderr)\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=FIRE, capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def _libraries(modules: set[str]) -> set[str]:
    return {module for module in modules if module.split(".")[0] in LIBRARIES}


def test_dotr_run_loads_no_library_and_no_room_that_it_does_not_use() -> None:
    modules = _loaded("run", "fire.dotr", "events")
    rooms = {module for module in modules if any(f"{module}.".startswith(f"dotr.{room}.") for room in ROOMS)}
    assert (_libraries(modules), rooms) == (set(), set())
    assert "dotr.core.pipeline" in modules


def test_dotr_run_loads_no_more_modules_than_it_did() -> None:
    ours = {module for module in _loaded("run", "fire.dotr", "events") if module.startswith("dotr.")}
    assert len(ours) <= 151, "what a short run does not use is imported where it is used"


def test_dotr_version_loads_next_to_nothing() -> None:
    modules = _loaded("--version")
    assert _libraries(modules) == set()
    assert len({module for module in modules if module.startswith("dotr.")}) <= 15
