"""`dotr close FILES… -o closed.ttl`: everything that follows from RDF and rules, as RDF.

Place:   a knowledge base that is made, written and forgotten.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

import click
import pyoxigraph as ox

from dotr.cli.knowledge_files import knowledge_options, made_of
from dotr.cli.options import written_file
from dotr.cli.run import outputs_apart
from dotr.cli.show import counted, note
from dotr.errors import UsageError
from dotr.io.decode.compression import plain_name
from dotr.io.decode.documents import Format, format_of, unknown_format
from dotr.io.files.outputs import open_output
from dotr.io.term_formatting import TermFormatter
from dotr.rdf.terms import Triple, to_oxigraph

_WRITTEN: Mapping[str, Format] = {
    "turtle": Format.TURTLE,
    "nt": Format.NTRIPLES,
    "rdfxml": Format.RDFXML,
    "jsonld": Format.JSONLD,
    "trig": Format.TRIG,
    "nquads": Format.NQUADS,
}
_OXIGRAPH = {
    Format.RDFXML: ox.RdfFormat.RDF_XML,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.TRIG: ox.RdfFormat.TRIG,
}
_CHUNK = 10_000


@click.command(short_help="Everything that follows from RDF and rules, as RDF.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--only-derived", is_flag=True, help="Leave out what the files state.")
@click.option("--format", "format_", type=click.Choice(tuple(_WRITTEN)), help="Default: by FILE's name, nt.")
@click.option("-o", "--output", metavar="FILE", type=written_file,
              help="Write here instead of standard output (`-`).")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Let -o replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
@knowledge_options
def command(
    files: tuple[str, ...],
    only_derived: bool,
    format_: str | None,
    output: str | None,
    overwrite: bool,
    quiet: bool,
    entailment: str | None,
    datatypes: bool,
    keep_contradictions: bool,
    base: str,
) -> None:
    """Print what FILEs state and everything that follows.

    FILEs are RDF, and rules: .dlog, or .dotr for its prologue. Without rules they are closed under OWL 2 RL,
    unless --entailment says otherwise. What contradicts itself is refused, with a proof.
    """
    kind = _format(format_, output)
    outputs_apart([output] if output else [], [], files)
    kb = made_of(files, entailment, datatypes, keep_contradictions, base)
    derived = sorted(kb.triples(which="derived"))
    stated = [] if only_derived else sorted(kb.triples(which="stated"))
    out = open_output(output, overwrite)
    for text in _text(sorted([*stated, *derived]), kind, kb.prefixes):
        out.write(text)
    out.finish()
    for one in kb.contradictions():
        note(str(one))
    if not quiet:
        note(f"{counted(len(kb) - len(derived), 'triple')} stated, {len(derived)} derived")


def _format(name: str | None, output: str | None) -> Format:
    """Raises UsageError D4127 where the two disagree, DataError D2008 for a name that says nothing."""
    if output is None:
        return _WRITTEN[name or "nt"]
    found = format_of(output)
    if plain_name(output) != output or (found is None and name is None):
        raise unknown_format(output)
    if name is not None and found is not None and _WRITTEN[name] is not found:
        raise UsageError.of(
            "D4127", f"--format {name} and the name `{output}` disagree", hint="leave one of them out"
        )
    kind = found if name is None else _WRITTEN[name]
    if kind not in _WRITTEN.values() or kind is None:
        raise unknown_format(output)
    return kind


def _text(triples: list[Triple], kind: Format, prefixes: Mapping[str, str]) -> Iterator[str]:
    """The triples as text, in canonical order."""
    if kind in (Format.NTRIPLES, Format.NQUADS):
        for start in range(0, len(triples), _CHUNK):
            yield "".join(f"{s} {p} {o} .\n" for s, p, o in triples[start : start + _CHUNK])
        return
    quads = (ox.Triple(*map(to_oxigraph, triple)) for triple in triples)  # type: ignore[arg-type]  # subjects are not literals
    if kind not in (Format.TURTLE, Format.TRIG):
        yield ox.serialize(quads, None, _OXIGRAPH[kind]).decode() + "\n"  # type: ignore[union-attr]  # bytes
        return
    usable = TermFormatter(prefixes).prefixes
    out = io.BytesIO()
    ox.serialize(quads, out, _OXIGRAPH[kind], prefixes=usable)
    yield out.getvalue().decode()
