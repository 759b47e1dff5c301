"""Pages of D417x: what `dotr explain` is asked.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D4171",
        "a question that is not whole, or several at once",
        "`--event`, `--why-not` and `--triple` are three questions: ask one. The last two are about one "
        "instant, which `--at` names.",
        "dotr explain fire.dotr events/ --why-not Fire",
        "dotr explain fire.dotr events/ --why-not Fire --at 12",
    ),
    _page(
        "D4172",
        "a rule that the program does not have",
        "`--rule` and `--why-not` take the name of a rule as the program writes it; the rules of an imported "
        "library begin with the name of the import.",
        "dotr explain fire.dotr events/ --rule Fier",
        "dotr explain fire.dotr events/ --rule Fire",
    ),
    _page(
        "D4173",
        "there is no such event",
        "No event of the run is the one that is asked for. `--why-not` says how far a rule came.",
        "dotr explain fire.dotr events/ --rule Fire --at 11",
        "dotr explain fire.dotr events/ --why-not Fire --at 11",
    ),
    _page(
        "D4174",
        "a term that cannot be read",
        "`--triple` is three terms, `--where` a name and one term, written as in Turtle with the prefixes of "
        "the program.",
        "dotr explain fire.dotr events/ --triple ':s1 is_in :room' --at 12",
        "dotr explain fire.dotr events/ --triple ':s1 :is_in :room' --at 12",
    ),
    _page(
        "D4176",
        "nothing is kept to explain with",
        "An engine keeps what explanations need only when it is asked to: the graphs and events of the "
        "longest horizon of its rules, or of a longer time.",
        'engine = dotr.Engine("fire.dotr"); …; event.explain()',
        'engine = dotr.Engine("fire.dotr", keep="horizon"); …; event.explain()',
    ),
    _page(
        "D4178",
        "a CONSTRUCT or DESCRIBE that asks for more than the state",
        "It is answered from what holds at one time, and always alike: other services, named graphs, the "
        "clock and chance are not part of that.",
        "dotr query fire.dotr 'CONSTRUCT { ?s ?p ?o } FROM <urn:g> WHERE { ?s ?p ?o }'",
        "dotr query fire.dotr 'CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }'",
    ),
    _page(
        "D4179",
        "no query of that name",
        "--query takes a QUERY that the rules define; those written inside a rule are called Rule.Event.",
        "dotr query fire.dotr --query Smok",
        "dotr query fire.dotr --query Smoke",
    ),
    _page(
        "D4177",
        "proofs in a format without a place for them",
        "`dotr run --explain` puts the proof of each event into its JSON line. The other formats have no "
        "place for it.",
        "dotr run fire.dotr events/ --explain --format trig",
        "dotr run fire.dotr events/ --explain --format jsonl",
    ),
    _page(
        "D4189",
        "a deployment that has nothing to explain",
        "It was not fed yet; or it keeps no messages (`dotr deploy --keep`), and the sources that it was "
        "fed are gone.",
        "dotr explain --dir .dotr",
        "dotr deploy fire.dotr --keep 7d && dotr feed events/ && dotr explain --dir .dotr",
    ),
)
