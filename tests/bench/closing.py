"""What closing a large background takes: memory at its peak and CPU, the reading of N-Triples included.

    python -m tests.bench.closing [--triples 10000000] [--entailment rdfs]

Method:  LUBM's first university, as often as needed, each time under another number, with its schema. A
         process of its own reads and closes it, and says how much it ever held (`ru_maxrss`) beyond what it
         held before it read. Asked for is everything: no query prunes. DOTR_DATA names the folder with LUBM.
         Ten million triples take three to four minutes of CPU.
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time

from dotr.core.deployment import Deployment, Settings
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.lang import load_program

from .harness import json_line, machine

HERE = "tests.bench.closing"


def write(folder: Path, triples: int) -> None:
    """So many triples at least, with the schema."""
    lubm = Path(os.environ["DOTR_DATA"], "lubm")
    (folder / "schema.owl").write_bytes((lubm / "univ-bench.owl").read_bytes())
    one = gzip.decompress((lubm / "University0.nt.gz").read_bytes()).decode()
    lines = one.count("\n")
    with (folder / "universities.nt").open("w", encoding="utf-8") as file:
        for number in range(-(-triples // lines)):
            file.write(one.replace("University0", f"University{number}"))


def peak() -> float:
    """MB that this process ever held."""
    return getrusage(RUSAGE_SELF).ru_maxrss / 1e3


def measure(folder: str, entailment: str) -> None:
    """Read and close what is in a folder; print it."""
    before, start = peak(), process_time()
    rules = Path(folder, "closing.dotr")
    rules.write_text(f"ENTAILMENT {entailment}\n", encoding="utf-8")
    program = load_program([str(rules)], read_rules_text)
    triples = read_background([str(path) for path in sorted(Path(folder).glob("[su]*"))])
    given = len(triples)
    deployment = Deployment(program, triples, Settings(materialize_all=True))
    del triples
    closed = deployment.closed_background()
    row = {
        "given": given,
        "closed": len(closed.index),
        "peak GB": (peak() - before) / 1e3,
        "bytes a triple given": (peak() - before) * 1e6 / given,
        "CPU s": process_time() - start,
    }
    print(json_line({"scenario": "closing", "entailment": entailment, **row, "machine": machine()}))


def main() -> None:
    """Write the background, and measure in another process."""
    parser = argparse.ArgumentParser(prog=f"python -m {HERE}")
    parser.add_argument("--triples", type=int, default=10_000_000)
    parser.add_argument("--entailment", default="rdfs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.triples)
        subprocess.run([sys.executable, "-m", HERE, folder, given.entailment], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 3 and not sys.argv[1].startswith("-"):
        measure(sys.argv[1], sys.argv[2])
    else:
        main()
