"""Pages of D3xxx: Datalog and ontologies.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_PREFIX = "PREFIX : <http://example.org/>\n"
_RDFS = _PREFIX + "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\n"


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, _PREFIX + wrong, _PREFIX + right, PageKind.DLOG)


PAGES: Final = (
    _page(
        "D3001",
        "an unsafe rule",
        "Every variable of a head, a FILTER or a BIND gets its values from an atom that is not negated, "
        "or from a BIND.\n"
        "Without one the rule would speak of everything there is.",
        ":quiet(?r, ?x) :- :Room(?r) .",
        ":quiet(?r, ?x) :- :Room(?r), :sensor(?r, ?x) .",
    ),
    _page(
        "D3002",
        "negation through recursion",
        "A rule may not wait for its own conclusion to be false. The cycle is printed.",
        ":Open(?x) :- :Door(?x), NOT :Shut(?x) .\n:Shut(?x) :- :Door(?x), NOT :Open(?x) .",
        ":Open(?x) :- :Door(?x), NOT :Shut(?x) .\n:Shut(?x) :- :latch(?x, :closed) .",
    ),
    _page(
        "D3003",
        "aggregation through recursion",
        "A total may not count what follows from it.",
        "[?r, :load, ?n] :- AGGREGATE([?p, :in, ?r] ON ?r BIND COUNT(?p) AS ?n) .\n[?p, :in, ?r] :- "
        "[?r, :load, ?n], [?p, :near, ?r] .",
        "[?r, :load, ?n] :- AGGREGATE([?p, :in, ?r] ON ?r BIND COUNT(?p) AS ?n) .\n[?p, :at, ?r] :- "
        "[?r, :load, ?n], [?p, :near, ?r] .",
    ),
    _page(
        "D3004",
        "computation without end",
        "In a recursive rule a BIND must not feed the head: every new value would make a further one.",
        "[?x, :count, ?m] :- [?x, :count, ?n], BIND(?n + 1 AS ?m) .",
        "[?x, :next, ?m] :- [?x, :count, ?n], BIND(?n + 1 AS ?m) .",
    ),
    _page(
        "D3005",
        "a head that may be anything, beside NOT or AGGREGATE",
        "A rule with a variable predicate or class in its head may derive what is negated. Schema "
        "triples in its body,\n"
        "which are known beforehand, would say what it derives.",
        "[?x, ?p, ?y] :- [?x, :same, ?z], [?z, ?p, ?y] .\n:Quiet(?r) :- :Room(?r), NOT :Noise(?r) .",
        "[?x, :near, ?y] :- [?x, :same, ?z], [?z, :near, ?y] .\n:Quiet(?r) :- :Room(?r), NOT :Noise(?r) .",
    ),
    Page(
        "D3006",
        "a rule derives schema from the stream",
        "Rules with variable predicates were unfolded over the schema of the background; an instant "
        "cannot change it.",
        "[?c, rdfs:subClassOf, :Alarm] :- [?c, :raisedBy, ?s] .   # with ENTAILMENT rdfs, :raisedBy "
        "from the stream",
        ":Smoke rdfs:subClassOf :Alarm .   # in the background",
        PageKind.OTHER,
    ),
    _page(
        "D3007",
        "a variable gets a second value",
        "BIND and AGGREGATE make a new variable. To compare, use FILTER.",
        "[?x, :f, ?v] :- [?x, :c, ?v], BIND(?v * 2 AS ?v) .",
        "[?x, :f, ?w] :- [?x, :c, ?v], BIND(?v * 2 AS ?w) .",
    ),
    _page(
        "D3008",
        "a function that Datalog may not use",
        "What follows from the background must not depend on when, where or how often it is computed.",
        "[?x, :seen, ?t] :- :Room(?x), BIND(NOW() AS ?t) .",
        "[?x, :seen, ?t] :- :Room(?x), :time(?x, ?t) .",
    ),
    _page(
        "D3009",
        "this is not a triple",
        "A literal is never a subject, a predicate is an IRI. In a body such an atom never holds.",
        '["lab", :contains, ?x] :- [?x, :room, "lab"] .',
        "[:lab, :contains, ?x] :- [?x, :room, :lab] .",
    ),
    _page(
        "D3020",
        "a rule that cannot be read",
        "`head, … :- atom, … .` with atoms `:p(?x, ?y)`, `:C(?x)` or `[?x, :p, ?y]`, NOT, FILTER, BIND "
        "and AGGREGATE.\n"
        "A rule ends with a dot; parsing goes on behind it.",
        ":Hot(?x) <- :val(?x, ?v), FILTER(?v > 60) .",
        ":Hot(?x) :- :val(?x, ?v), FILTER(?v > 60) .",
    ),
    _page(
        "D3021",
        "an atom has one or two arguments",
        "All knowledge is triples: one argument says the class, two are subject and object.",
        ":reading(?s, ?v, ?t) :- :obs(?s, ?v) .",
        ":value(?s, ?v) :- :obs(?s, ?v) .",
    ),
    _page(
        "D3022",
        "Datalog has no events",
        "Datalog speaks of one instant. Events are compared in ON, WHERE and WITH of a .dotr rule.",
        ":Hot(?x) :- :val(?x, ?v), FILTER(?v > Smoke.?v) .",
        ":Hot(?x) :- :val(?x, ?v), FILTER(?v > 60) .",
    ),
    _page(
        "D3023",
        "a total of totals needs a rule of its own",
        "AGGREGATE stands in the body of a rule, not inside another AGGREGATE.",
        "[:all, :load, ?m] :- AGGREGATE(AGGREGATE([?p, :in, ?r] ON ?r BIND COUNT(?p) AS ?n) BIND "
        "SUM(?n) AS ?m) .",
        "[?r, :load, ?n] :- AGGREGATE([?p, :in, ?r] ON ?r BIND COUNT(?p) AS ?n) .\n"
        "[:all, :total, ?m] :- AGGREGATE([?r, :load, ?n] BIND SUM(?n) AS ?m) .",
    ),
    _page(
        "D3024",
        "rules know no blank nodes",
        'In a body a variable says "some"; in a head a blank node would be invented again at every instant.',
        "[?x, :near, _:y] :- [?x, :at, ?z] .",
        "[?x, :near, ?z] :- [?x, :at, ?z] .",
    ),
)
