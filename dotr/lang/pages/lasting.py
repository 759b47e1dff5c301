"""Pages of D15xx, D220x, D416x, D418x and D510x: what lasts.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind

_PREFIX = "PREFIX : <http://example.org/>\n"
_JAM = _PREFIX + "QUERY Jam := { SELECT DISTINCT ?road WHERE { ?road a :Congested } }\n"
_RULE = "RULE Jammed\nDEFINE { dotr_x a :Jammed }\nFROM "


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    Page(
        "D1501",
        "LATEST is for a predicate",
        "HOLD :status LATEST keeps a value until the same subject gets another of that predicate. A class "
        "has no values that could replace one another, nor has everything at once.",
        _PREFIX + "HOLD a :Open LATEST",
        _PREFIX + "HOLD :state LATEST",
    ),
    Page(
        "D1502",
        "membership is held class by class",
        "HOLD a :Congested keeps the members of one class; HOLD * also keeps those of classes without a line "
        "of their own.",
        "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\nHOLD rdf:type FOR 5 min",
        _PREFIX + "HOLD a :Congested FOR 5 min",
    ),
    Page(
        "D1503",
        "a predicate is held in two ways",
        "A predicate, a class and `*` have one line each in a deployment, libraries included; the same line "
        "twice is one.",
        _PREFIX + "HOLD :in FOR 10 min\nHOLD :in LATEST",
        _PREFIX + "HOLD :in LATEST FOR 10 min",
    ),
    Page(
        "D1504",
        "a library may not say how long everything lasts",
        "`HOLD *` is about the whole stream of whoever imports the file: it stands in the main file only.",
        "IMPORT <hold.dotr> AS Library   # which says: HOLD * FOR 10 s",
        "HOLD * FOR 10 s",
    ),
    Page(
        "D1505",
        "an exception of nothing",
        "FOR 0 s takes a predicate or a class out of `HOLD *`. Without such a line nothing holds it anyway.",
        _PREFIX + "HOLD :reading FOR 0 s",
        _PREFIX + "HOLD * FOR 10 min\nHOLD :reading FOR 0 s",
    ),
    Page(
        "D1506",
        "ISTREAM and DSTREAM take a QUERY",
        "They compare the answers of a query before and after a change of what lasts. A rule's events happen "
        "at instants, and a stream of changes has no answers that could change again.",
        _JAM + _RULE + "Jam\nRULE Again DEFINE { dotr_x a :Again } FROM Begun := ISTREAM Jammed",
        _JAM + _RULE + "Begun := ISTREAM Jam",
    ),
    Page(
        "D1507",
        "NOW() under ISTREAM or DSTREAM",
        "What lasts changes when a message comes or a period ends, not because time goes by: a query whose "
        "answers depend on the time of asking has no changes there. The event has a time: Begun.time.",
        _PREFIX + _RULE + "Late := ISTREAM { SELECT ?x WHERE { ?x :due ?t FILTER(?t < NOW()) } }",
        _PREFIX + _RULE + "Due := ISTREAM { SELECT ?x ?t WHERE { ?x :due ?t } }\nWHERE Due.?t < Due.time",
    ),
    _page(
        "D2201",
        "a message says nothing",
        "A message has a graph, an insertion or a deletion. An empty graph is one, too: it says that a graph "
        "came.",
        "engine.push(None, at=12)",
        'engine.push("", at=12)',
    ),
    _page(
        "D2202",
        "a deletion with a blank node",
        "A deletion names triples, as DELETE DATA of SPARQL does. A blank node is scoped to the graph it "
        "stands in, so it can name nothing in another one.",
        '{"time": 12, "delete": "_:b <urn:in> <urn:room1> ."}',
        '{"time": 12, "delete": "<urn:badge7> <urn:in> <urn:room1> ."}',
    ),
    _page(
        "D2203",
        "the background was written while a run goes on over it",
        "Where nothing lasts, what a background states is not kept but read again when a first message "
        "inserts or deletes. By then it must be what the rules were deployed over.",
        "echo '<urn:a> <urn:b> <urn:c> .' >> building.ttl   # between two pushes",
        'engine.replace("rooms.dotr", at=12)',
    ),
    _page(
        "D2204",
        "what is not a row of an RDF Patch",
        "A patch has a row a line: H, TX, TC, PA, PD, A or D, its terms as in N-Triples or with a prefix "
        "that a PA row added, and a dot. What changes triples stands between TX and TC.",
        "TX .\nA <urn:badge7> <urn:in> <urn:room1>\nTC .",
        "TX .\nA <urn:badge7> <urn:in> <urn:room1> .\nTC .",
    ),
    _page(
        "D2205",
        "what a patch may say, and a stream may not",
        "There is one graph that lasts, so a row has no graph; and an aborted transaction (TA) changed "
        "nothing.",
        "TX .\nA <urn:badge7> <urn:in> <urn:room1> <urn:graph1> .\nTC .",
        "TX .\nA <urn:badge7> <urn:in> <urn:room1> .\nTC .",
    ),
    _page(
        "D4160",
        "what lasts is not run there",
        "HOLD, ISTREAM, DSTREAM and messages that insert or delete are for one process, for the processes of "
        "one machine, or for Spark with log and output on a disk that all workers share; not for object "
        "stores, and not for frames of `dotr.spark`.",
        "dotr batch rooms.dotr --log s3://logs/day.parquet --out events --engine spark",
        "dotr batch rooms.dotr --log /shared/day.parquet --out events --engine spark",
    ),
    _page(
        "D4161",
        "a time that is closed",
        "Rules change from a time on that has not closed: what happened before it was reported, and is never "
        "taken back. The message names the first possible time.",
        'engine.advance(20); engine.replace("rooms.dotr", at=15)',
        'engine.advance(20); engine.replace("rooms.dotr", at=21)',
    ),
    _page(
        "D4162",
        "sources or one message",
        "A feed pushes sources, or it gives one message: what --insert and --delete name happens at the "
        "time of --at.",
        "dotr feed --insert door7.ttl",
        "dotr feed --insert door7.ttl --at now",
    ),
    _page(
        "D4163",
        "what undeploy takes out",
        "Either a rule, by its name, or with --planned what was deployed from a time on that has not come.",
        "dotr undeploy",
        "dotr undeploy Fire",
    ),
    _page(
        "D5211",
        "a change is planned already",
        "What is deployed from a time on waits for that time. Until then the deployment is as it was, and "
        "what is planned can be taken back or planned again, not changed by a deploy that holds at once.",
        "dotr deploy rooms.dotr --from 2026-03-01T00:00:00Z; dotr deploy doors.dotr",
        "dotr undeploy --planned; dotr deploy doors.dotr",
    ),
    _page(
        "D4180",
        "a value for a variable that the query does not have",
        "`kb.query(text, room=term)` gives values to variables that stand in the query.",
        'kb.query("SELECT ?x WHERE { ?x a :Room }", room=term)',
        'kb.query("SELECT ?x WHERE { ?x :in ?room }", room=term)',
    ),
    _page(
        "D4181",
        "not a text of rules",
        "Rules are added and removed as Datalog text, or as a pathlib.Path of a file.",
        "kb.add_rules(42)",
        'kb.add_rules("[?x, :within, ?y] :- [?x, :in, ?y] .")',
    ),
    _page(
        "D4182",
        "no such entailment",
        "A knowledge base derives by its own rules alone (none), or also by those of RDFS or OWL 2 RL.",
        'KnowledgeBase(entailment="owl")',
        'KnowledgeBase(entailment="owl2rl")',
    ),
    _page(
        "D4183",
        "time went back",
        "What ended has ended: advance goes on to the same time or a later one.",
        "kb.advance(10); kb.advance(9)",
        "kb.advance(9); kb.advance(10)",
    ),
    _page(
        "D4184",
        "a statement that would have ended",
        "A statement until a time that has come would hold at no time.",
        "kb.advance(10); kb.insert(triples, until=10)",
        "kb.advance(10); kb.insert(triples, until=11)",
    ),
    _page(
        "D4185",
        "a transaction inside of `with kb.reading():`",
        "Inside of that block the state stays as it is: a transaction there would wait for its own thread.",
        "with kb.reading(): kb.insert(triples)",
        "with kb.reading(): rows = kb.query(text)\nkb.insert(triples)",
    ),
    _page(
        "D4186",
        "an ASK has no rows",
        "`query` gives the rows of a SELECT, `ask` whether there is an answer.",
        'kb.query("ASK { ?x a :Room }")',
        'kb.ask("ASK { ?x a :Room }")',
    ),
    _page(
        "D4187",
        "an argument that is not one of the possible ones",
        "Some arguments of a knowledge base are one of a few words; the message has them.",
        'KnowledgeBase(terms="text")',
        'KnowledgeBase(terms="canonical")',
    ),
    _page(
        "D4188",
        "no such command of the shell",
        "`help` lists the commands of `dotr kb shell`, and the message says what was found.",
        "instert :a :in :b",
        "insert :a :in :b",
    ),
    _page(
        "D5103",
        "not a saved knowledge base, or a damaged one",
        "The file does not begin as `kb.save` begins one, or its bytes are not those its checksum is of.",
        'KnowledgeBase.open("building.ttl")',
        'KnowledgeBase("building.ttl").save("building.kb")\nKnowledgeBase.open("building.kb")',
    ),
    _page(
        "D5104",
        "a knowledge base saved in another version",
        "The format of saved knowledge bases has changed between the two versions of dotr.",
        'KnowledgeBase.open("saved-by-another-version.kb")',
        'KnowledgeBase("building.ttl").save("building.kb")',
    ),
)
