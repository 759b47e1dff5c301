"""`dotr docs`: the manual as a site, with search and a reference made from the code.

Place:   builds with mkdocs from the pages of dotr/docs, which `dotr help` prints one by one.
Method:  the pages are copied beside generated ones (diagnostics, commands, Python, languages, libraries)
         into a folder of their own; nothing is fetched from anywhere, and the site needs no server.
"""

from __future__ import annotations

import inspect
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click

from dotr.cli.help import pages
from dotr.cli.options import written_folder
from dotr.errors import EngineError, RefusedError
from dotr.io.files.rule_texts import shipped
from dotr.lang.explain import PAGES

_HOME = Path(__file__).resolve().parents[1] / "docs"


@click.command(short_help="The manual as a site.")
@click.option(
    "-o", "--output", type=written_folder, default="dotr-site", metavar="DIR", help="Default: dotr-site."
)
@click.option("--overwrite", is_flag=True, help="Replace DIR if it exists.")
def command(output: str, overwrite: bool) -> None:
    """Build the manual as static pages with search; open DIR/index.html. Needs the extra `docs`."""
    if os.path.exists(output) and not overwrite:
        raise RefusedError.of("D5001", f"`{output}` exists", hint="give another folder, or add --overwrite")
    try:
        build(Path(output).absolute())
    except ImportError:
        raise EngineError.of(
            "D4205", "the site needs mkdocs-material", hint="pip install 'dotr[docs]'"
        ) from None
    click.echo(f"open {output}/index.html", err=True)


def build(site: Path) -> None:
    """Build the site into a folder. Raises ImportError without mkdocs."""
    from mkdocs.commands.build import build as mkdocs_build  # noqa: PLC0415  # an extra
    from mkdocs.config import load_config  # noqa: PLC0415  # an extra

    with tempfile.TemporaryDirectory(prefix="dotr-docs-") as folder:
        write_pages(Path(folder))
        settings = io.BytesIO((_HOME / "site.yml").read_bytes())
        settings.name = "mkdocs.yml"
        config = load_config(settings, docs_dir=folder, site_dir=str(site))
        mkdocs_build(config)


def write_pages(folder: Path) -> None:
    """The pages of the site: those of the manual, and the reference."""
    for name, page in pages().items():
        shutil.copy(page, folder / f"{name}.md")
    for path in sorted(_HOME.glob("*.svg")):
        shutil.copy(path, folder / path.name)
    generated = {
        "diagnostics": diagnostics_page(),
        "commands": commands_page(),
        "api": api_page(),
        "patterns": (shipped("patterns") / "README.md").read_text(encoding="utf-8"),
    }
    for name, text in generated.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    for path in folder.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        text = text.replace("../lang/language.md", "languages.md").replace(
            "../../patterns/README.md", "patterns.md"
        )
        path.write_text(text, encoding="utf-8")


def diagnostics_page() -> str:
    """Every code: what it means, a wrong and a right example."""
    lines = ["# Diagnostics", "", "`dotr check --explain CODE` prints one of these.", ""]
    for code, page in PAGES.items():
        lines += [f"## {code}: {page.title}", "", " ".join(page.text.split()), ""]
        for title, text in (("wrong", page.wrong), ("right", page.right)):
            lines += [f"{title}:", "", "```", text.strip("\n"), "```", ""]
    return "\n".join(lines)


def commands_page() -> str:
    """The help of every command."""
    from dotr.cli.main import VERBS, group  # noqa: PLC0415  # which imports this module

    lines = ["# Commands", ""]
    context = click.Context(group, info_name="dotr", max_content_width=100, terminal_width=100)
    for verb in VERBS:
        command = group.get_command(context, verb)
        if command is None:
            continue
        own = click.Context(
            command, info_name=verb, parent=context, max_content_width=100, terminal_width=100
        )
        lines += [f"## dotr {verb}", "", "```", command.get_help(own), "```", ""]
    return "\n".join(lines)


def api_page() -> str:
    """The public Python surface, from its docstrings."""
    lines = ["# Python reference", ""]
    for module in map(import_module, ("dotr", "dotr.spark", "dotr.rdflib")):
        for name in module.__all__:
            thing = getattr(module, name)
            if not callable(thing):  # the version
                continue
            lines += [f"## {module.__name__}.{name}", "", *_documented(thing, name)]
            for member, function in _members(thing) if inspect.isclass(thing) else ():
                lines += [f"### {name}.{member}", "", *_documented(function, member)]
    return "\n".join(lines)


def _members(class_: type) -> Iterator[tuple[str, object]]:
    for name, member in vars(class_).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod)):
            yield name, member.__func__ if isinstance(member, classmethod) else member


def _documented(thing: object, name: str) -> Iterator[str]:
    try:
        signature = str(inspect.signature(thing))  # type: ignore[arg-type]  # the error says what has none
    except (TypeError, ValueError):
        signature = ""
    yield from ("```python", f"{name}{signature}", "```", "")
    yield from (inspect.getdoc(thing) or "", "")
