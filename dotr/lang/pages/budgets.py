"""Pages of what takes too much work: Datalog, rules, LARS rules, queries, texts.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_UNITS = (
    "A unit is a row of a loop; an evaluated expression counts ten. `--budget N` says how many there are\n"
    "(10,000,000). The message names the step, and the longest of the loops whose lengths multiply.\n"
)

PAGES: Final = (
    Page(
        "D4003",
        "Datalog that takes too much work",
        f"{_UNITS}An instant has a budget for all of its Datalog. What the background alone costs is\n"
        "charged once, at deployment, against the budget and a hundred units more for each of its triples.\n"
        "At an instant, `--on-error skip` and `file=` set its graphs aside.",
        ":alike(?a, ?b) :- [?a, :val, ?v], [?b, :val, ?w], FILTER(?v - ?w < 1 && ?w - ?v < 1) .",
        ":alike(?a, ?b) :- [?a, :room, ?r], [?b, :room, ?r], [?a, :val, ?v], [?b, :val, ?v] .",
        PageKind.OTHER,
    ),
    Page(
        "D4010",
        "a rule that takes too much work for one fact",
        f"{_UNITS}A rule has a budget for every fact that triggers it; every EACH multiplies the\n"
        "matches by its candidates. With `--on-error skip` and `file=` the fact has no match of the rule:\n"
        "what was found for it is left out, nothing is consumed, the run goes on, and the summary counts\n"
        "such facts by rule. The graph of such a fact was taken, and other rules had their events of it: it\n"
        "is not a dead letter, as feeding it again would give those twice. To find what was left out, run\n"
        "the stream again with a larger `--budget` and `--only RULE`. Under `fail` the run ends behind the\n"
        "instant.",
        "AND EACH A WITHIN 1 d FROM T\nAND EACH B WITHIN 1 d FROM T",
        "AND EACH A WITHIN 1 d FROM T ON A.?room = T.?room\nAND EACH B WITHIN 1 d FROM T ON B.?x = T.?x",
        PageKind.OTHER,
    ),
    Page(
        "D4011",
        "what holds takes too much work at a point",
        f"{_UNITS}A derived atom counts ten more. All LARS rules together have a budget at every\n"
        "point of their timeline. Between two graphs, ten units a point, it is also a budget of the points\n"
        "that have to be looked at though nothing came: where a head triggers a rule (`FROM calm`) that\n"
        "has an event at each, or `AT` tells the points apart at which a head holds that goes on and on.\n"
        "What holds later depends on what holds now, so that nothing can be left\n"
        "out: the run ends there, with `--on-error skip` and `file=`, too. A batch that cuts what holds by\n"
        "key begins again in one task where a part needs more than its share, and refuses what a run does;\n"
        "in a DataFrame of Spark each part has the whole budget.",
        "near(?a, ?b) :- at(?a, ?x) WITHIN 1 d, at(?b, ?y) WITHIN 1 d, FILTER(?x - ?y < 1) .",
        "near(?a, ?b) :- at(?a, ?place) WITHIN 1 h, at(?b, ?place) WITHIN 1 h .",
        PageKind.OTHER,
    ),
    Page(
        "D4133",
        "a text that is too long",
        "What CONCAT, REPLACE and ENCODE_FOR_URI make has 1,048,576 characters at most, also where one is\n"
        "made of another, step by step. (Texts of the data may be longer.) Past that the value is not\n"
        "unbound, it is an error: of the instant in a query and in Datalog, and in a rule of the fact that\n"
        "triggers it, which is left out then as one that takes too much work (D4010); in LARS rules it ends\n"
        "the run. In REPLACE each group\n"
        "(`$1`) is taken to be as long as the text, once for all places.",
        "SELECT ?s WHERE { ?x :log ?t BIND(REPLACE(?t, '', ?t) AS ?s) }",
        "SELECT ?s WHERE { ?x :log ?t BIND(SUBSTR(?t, 1, 1000) AS ?s) }",
        PageKind.OTHER,
    ),
    Page(
        "D4132",
        "a query that takes too much work",
        f"{_UNITS}Every query has a budget of its own at every instant, as if it ran alone. What it\n"
        "answers from the background alone is charged once, at deployment. At an instant, `--on-error skip`\n"
        "and `file=` set its graphs aside.",
        "SELECT ?x WHERE { ?x :val ?v . ?y :val ?w . ?z :val ?u FILTER(?v + ?w + ?u < 0) }",
        "SELECT ?x WHERE { ?x :val ?v ; :near ?y . ?y :val ?w FILTER(?v + ?w < 0) }",
        PageKind.OTHER,
    ),
)
