"""What travels with dotr: the manual (`help`, `docs`), beginnings (`demo`, `init`, `patterns`).

Place:   reads the package's own files and asks the system; `languages` of the manual is the reference beside
         the parsers.
Method:  for the site, which mkdocs builds, the pages of dotr/docs are copied beside generated ones
         (diagnostics, commands, Python, languages, libraries) into a folder of their own; nothing is fetched
         from anywhere, and the site needs no server.
"""

from __future__ import annotations

import inspect
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Final

import click

from dotr.cli.options import file_name, written_folder
from dotr.errors import EngineError, RefusedError, UsageError
from dotr.io.rules_and_background import read_rules_text, shipped
from dotr.lang.explain import PAGES
from dotr.lang.grammar.cursor import nearest
from dotr.regex import regex

_PACKAGE = Path(__file__).resolve().parents[1]
_LANGUAGES = _PACKAGE / "lang" / "language.md"


def pages() -> dict[str, Path]:
    """Topic → its page, in order of name."""
    found = {path.stem: path for path in (_PACKAGE / "docs").glob("*.md")}
    return dict(sorted({**found, "languages": _LANGUAGES}.items()))


def _title(page: Path) -> str:
    first = page.read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ")


@click.command()
@click.argument("topic", required=False)
def command(topic: str | None) -> None:
    """Print a page of the manual; without TOPIC, the list of pages."""
    known = pages()
    if topic is None:
        width = max(map(len, known))
        for name, page in known.items():
            click.echo(f"{name.ljust(width)}  {_title(page)}")
        return
    if topic not in known:
        near = get_close_matches(topic, known, 1)
        hint = f"did you mean `{near[0]}`?" if near else "`dotr help` lists the topics"
        raise click.UsageError(f"there is no page `{topic}`; {hint}")
    text = known[topic].read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        click.echo(text, nl=False)
        return
    from rich.console import Console  # noqa: PLC0415  # start-up
    from rich.markdown import Markdown  # noqa: PLC0415  # start-up

    Console().print(Markdown(text))


_HOME = Path(__file__).resolve().parents[1] / "docs"


@click.command()
@click.option(
    "-o", "--output", type=written_folder, default="dotr-site", metavar="DIR", help="Default: dotr-site."
)
@click.option("--overwrite", is_flag=True, help="Replace DIR if it exists.")
def docs(output: str, overwrite: bool) -> None:
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


_SHIM: Final = regex(r'https://[^"\s>]+/iframe-worker/shim')
"""What the theme fetches for the search of pages that are opened as files."""


def build(site: Path) -> None:
    """Build the site into a folder; it needs no network. Raises ImportError without mkdocs."""
    from mkdocs.commands.build import build as mkdocs_build  # noqa: PLC0415  # an extra
    from mkdocs.config import load_config  # noqa: PLC0415  # an extra

    with tempfile.TemporaryDirectory(prefix="dotr-docs-") as folder:
        write_pages(Path(folder))
        settings = io.BytesIO((_HOME / "site.yml").read_bytes())
        settings.name = "mkdocs.yml"
        config = load_config(settings, docs_dir=folder, site_dir=str(site))
        mkdocs_build(config)
    for page in site.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_SHIM.sub("iframe-worker.js", text), encoding="utf-8")


def write_pages(folder: Path) -> None:
    """The pages of the site: those of the manual, and the reference."""
    for name, page in pages().items():
        shutil.copy(page, folder / f"{name}.md")
    for path in sorted(one for kind in ("svg", "png", "css", "js") for one in _HOME.glob(f"*.{kind}")):
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
        text = text.replace("\n```python no-run\n", "\n```python\n")  # which the site would take for text
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


TEMPLATES = Path(__file__).parent.parent / "templates"


def templates() -> list[str]:
    """The names of the templates."""
    return sorted(folder.name for folder in TEMPLATES.iterdir() if (folder / "rules.dotr").is_file())


@click.command()
@click.argument("name", metavar="NAME", type=file_name)
@click.option(
    "--from", "template", type=click.Choice(templates()), default="building", help="Default: building."
)
def init(name: str, template: str) -> None:
    """Make the folder NAME: rules, background, twenty graphs, tests, and a README with five commands."""
    _copied(TEMPLATES / template, name)
    click.echo(f"{name}/ is ready. Try:\n", err=True)
    click.echo(f"  cd {name}\n  dotr run rules.dotr events.jsonl\n\nand then what README.md says.", err=True)


_ENDING = ".dotr"


@click.group(invoke_without_command=True)
@click.pass_context
def patterns(context: click.Context) -> None:
    """List the pattern libraries: what each reports, and how to import it."""
    if context.invoked_subcommand is not None:
        return
    names = libraries()
    width = max(map(len, names))
    for name in names:
        head = _head(name)
        use = next((line for line in head if line.startswith("IMPORT")), "")
        sys.stdout.write(f"{name.ljust(width)}  {head[0]}\n{' ' * width}  {use}\n")


@patterns.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a library: what it needs, its values, what it gives, and its rules."""
    if name.removesuffix(_ENDING) not in libraries():
        raise UsageError.of(
            "D4405",
            f"there is no pattern library `{name}`",
            hint=nearest(name, libraries()) or f"there are: {', '.join(libraries())}",
        )
    sys.stdout.write(_text(name.removesuffix(_ENDING)))


def libraries() -> list[str]:
    """The names of the libraries."""
    return sorted(p.name.removesuffix(_ENDING) for p in shipped("patterns").iterdir() if p.suffix == _ENDING)


def _text(name: str) -> str:
    return read_rules_text(f"dotr:patterns/{name}{_ENDING}")


def _head(name: str) -> list[str]:
    """The lines of a library's first comment."""
    lines = []
    for line in _text(name).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.lstrip("#").strip())
    return lines


_EXAMPLE = "examples/building"
_RULES, _STREAM = "building.dotr", "morning.ttl"


@click.command()
@click.option(
    "--copy", "folder", type=file_name, metavar="FOLDER", help="Copy the demo's files into a new folder."
)
def demo(folder: str | None) -> None:
    """An hour in a small office: rules, sensors, a fire, and the output of dotr."""
    try:
        place = shipped(_EXAMPLE)
    except FileNotFoundError:
        raise EngineError.of(
            "D4202", "the demo's files are missing from this installation", hint="install dotr again"
        ) from None
    if folder is not None:
        place = _copied(place, Path(folder))
    rules, stream = place / _RULES, place / _STREAM
    click.echo(f"One morning in a small office: {_shown(stream)} through {_shown(rules)}.\n", err=True)
    from dotr.cli.run import command as run  # noqa: PLC0415  # start-up: the manual runs nothing

    run.main([str(rules), str(stream), "--format", "text"], "dotr demo", standalone_mode=False)
    where = _shown(place) if folder is not None else "building"
    click.echo(_next(where, copied=folder is not None), err=True)


def _copied(place: Path, folder: Path | str) -> Path:
    """A folder of the package as a new one. Raises RefusedError D5001, EngineError D4201."""
    if Path(folder).exists():
        raise RefusedError.of("D5001", f"`{folder}` exists", hint="name a folder that does not exist yet")
    try:
        shutil.copytree(place, folder, ignore=shutil.ignore_patterns("__pycache__"))
    except OSError as error:
        raise EngineError.of(
            "D4201", f"cannot write {folder}: {error.strerror}", hint="name another folder"
        ) from None
    return Path(folder)


def _shown(path: Path) -> str:
    """A path as a user would type it: relative when it lies below the working directory."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _next(where: str, copied: bool) -> str:
    tips = [
        (f"dotr check {where}/{_RULES}", "what is wrong with rules, before they run"),
        (f"dotr run {where}/{_RULES} {where}/{_STREAM} --format jsonl", "the same events, with what matched"),
        (f"dotr plan {where}/{_RULES}", "what will run, and how far back it remembers"),
    ]
    if not copied:
        tips.insert(0, (f"dotr demo --copy {where}", "puts these files here, to be changed; then"))
    width = max(len(tip) for tip, _ in tips)
    return "\nTry next:\n" + "\n".join(f"  {tip.ljust(width)}   {why}" for tip, why in tips)
