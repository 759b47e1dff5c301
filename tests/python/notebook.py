"""`python -m tests.python.notebook`: run the notebook of `examples/building`, and save what it shows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "examples" / "building" / "building.ipynb"


def shown(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], object]]:
    """Each cell of code with what its last expression gives. Cells share a namespace, and run where the
    notebook is.
    """
    namespace: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            *lines, last = "".join(cell["source"]).rstrip("\n").split("\n")
            exec("\n".join(lines), namespace)  # noqa: S102  # our own notebook
            yield cell, eval(last, namespace)  # noqa: S307  # see above


def data_of(value: object) -> dict[str, list[str]]:
    """What a notebook saves of a value."""
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    html = getattr(value, "_repr_html_", None)
    return {"text/html": html().splitlines(keepends=True), **data} if html is not None else data


def renew() -> None:
    """Save the notebook with what it shows now."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    os.chdir(NOTEBOOK.parent)
    for number, (cell, value) in enumerate(shown(notebook), 1):
        cell["execution_count"] = number
        if value is not None:
            output = {"data": data_of(value), "execution_count": number, "metadata": {}}
            cell["outputs"] = [{"output_type": "execute_result", **output}]
    NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    renew()
