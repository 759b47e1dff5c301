"""What lasts, measured: windows over a transitive property, facts and rules that change, standing answers.

Place:   the scenarios `imars`, `volz`, `delta` and `windows` of __main__.py.
Method:  each has its baseline in the same process and turns: closing from nothing by the same engine (naive),
         delete and rederive written out by hand for the one rule of IMaRS (dred: Python sets, no engine), and
         asking pyoxigraph again. Processor time; the median over steps, which is what a user waits for.
Data:    trees and ontologies as the papers describe them, and a communication graph with few busy and many
         quiet people (insert on message, delete a day later), from a seed.
"""

from __future__ import annotations

import gc
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median
from time import process_time
from unittest.mock import patch

import pyoxigraph as ox
from msgspec.structs import replace

from dotr import Engine, KnowledgeBase
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.enrich import maintenance
from dotr.enrich.maintenance import Maintained
from dotr.enrich.materialiser import Materialiser
from dotr.events import FOREVER, Clock, Message
from dotr.joins.plan import relation_of
from dotr.lang import parse_datalog, parse_program, parse_query
from dotr.lasting.instants import watching
from dotr.lasting.model import MaintainedModel, lasting_model
from dotr.program import Program
from dotr.rdf.terms import RDF_TYPE, Triple
from dotr.reference.enrich import quad

IS_IN = "<urn:isIn>"
TRANSITIVE = "[?x, <urn:isIn>, ?z] :- [?x, <urn:isIn>, ?y], [?y, <urn:isIn>, ?z] .\n"


def timed(work: Callable[[], object]) -> float:
    start = process_time()
    work()
    return process_time() - start


# -- imars


def trees(edges: int, seed: int, branching: int = 10, depth: int = 3) -> list[Triple]:
    """Edges `child isIn parent` of complete trees, in random order."""
    found: list[Triple] = []
    tree = 0
    while len(found) < edges:
        layer = [f"<urn:t{tree}>"]
        for _ in range(depth):
            below = [f"{node[:-1]}.{child}>" for node in layer for child in range(branching)]
            found += [(child, IS_IN, child[: child.rindex(".")] + ">") for child in below]
            layer = below
            if len(found) > 2 * edges:
                break
        tree += 1
    random.Random(seed).shuffle(found)
    return found[:edges]


class Dred:
    """Delete and rederive for transitivity, by hand: pairs in sets, both directions indexed."""

    def __init__(self, edges: Iterable[tuple[str, str]]) -> None:
        self.edges: set[tuple[str, str]] = set()
        self.up: defaultdict[str, set[str]] = defaultdict(set)
        self.down: defaultdict[str, set[str]] = defaultdict(set)
        self.step(edges, ())

    def step(self, insert: Iterable[tuple[str, str]], delete: Iterable[tuple[str, str]]) -> None:
        over = deque(pair for pair in delete if pair in self.edges)
        self.edges.difference_update(over)
        gone: set[tuple[str, str]] = set(over)
        while over:  # overdelete
            x, y = over.popleft()
            for pair in [*((x, z) for z in self.up[y]), *((w, y) for w in self.down[x])]:
                if pair not in gone and pair[1] in self.up[pair[0]]:
                    gone.add(pair)
                    over.append(pair)
        for x, y in gone:
            self.up[x].discard(y)
            self.down[y].discard(x)
        new = [pair for pair in gone if pair in self.edges or self.up[pair[0]] & self.down[pair[1]]]
        added = [pair for pair in insert if pair not in self.edges]
        self.edges.update(added)
        todo = deque([*new, *added])
        while todo:  # rederive, and insert semi-naively
            x, y = todo.popleft()
            if y in self.up[x]:
                continue
            self.up[x].add(y)
            self.down[y].add(x)
            todo.extend((x, z) for z in self.up[y] if z not in self.up[x])
            todo.extend((w, y) for w in self.down[x] if y not in self.up[w])

    def __len__(self) -> int:
        return sum(map(len, self.up.values()))


_TURN, _ENOUGH = 8, 9
"""Steps of one, before the other takes as many; how often all is closed from nothing."""


def imars_step(window: int, share: float, steps: int) -> dict[str, float]:
    """Median milliseconds of a step in which `share` of a window enters, and as much leaves.

    The stream goes round and round a pool of twice the window: trees are as dense in windows of any size.
    """
    entering = max(1, int(window * share))
    pool = trees(2 * window, window)
    stream = [pool[place % len(pool)] for place in range(window + entering * (steps + 2))]
    rules = parse_datalog(TRANSITIVE)
    holds = deque(stream[:window])
    ours = Maintained(rules, holds, ends={triple: place // entering for place, triple in enumerate(holds)})
    dred = Dred((s, o) for s, _, o in holds)
    changes: list[tuple[dict[Triple, int], list[Triple]]] = []
    for number in range(steps + 2):
        first = window + number * entering
        new = {stream[at]: at // entering for at in range(first, first + entering)}
        changes.append((new, [holds.popleft() for _ in range(entering)]))
        holds.extend(new)
    pairs = [([(s, o) for s, _, o in new], [(s, o) for s, _, o in old]) for new, old in changes]

    def change(number: int) -> None:
        ours.go(number, *changes[number])
        ours.commit()

    took: dict[str, list[float]] = {"ours": [], "dred": []}
    naive: list[float] = []
    gc.collect()
    gc.freeze()  # a collection looks at what the changes made, not at all that this process ever did
    for first in range(0, steps + 2, _TURN):  # each goes on for itself, as in a stream, but in turns
        turn = range(first, min(first + _TURN, steps + 2))
        took["ours"] += [timed(lambda number=number: change(number)) for number in turn]  # type: ignore[misc]
        took["dred"] += [timed(lambda number=number: dred.step(*pairs[number])) for number in turn]  # type: ignore[misc]
        at = stream[(first + 1) * entering : (first + 1) * entering + window]
        if len(naive) < _ENOUGH:
            naive += [timed(lambda at=at: Materialiser(rules, at)) for _ in range(3)]  # type: ignore[misc]
    gc.unfreeze()
    assert ours.expires
    assert len(ours) == len(dred) == len(Materialiser(rules, list(holds)).background)
    took = {name: seconds[2:] for name, seconds in took.items()}  # what compiles lazily has compiled
    return {name: median(seconds) * 1e3 for name, seconds in {**took, "naive": naive}.items()}


def imars_work(window: int, entering: int = 10, steps: int = 20) -> float:
    """Rows that joins look at, and rows that come and go, for each triple that enters and one that leaves."""
    pool = trees(2 * window, window)
    stream = [pool[place % len(pool)] for place in range(window + entering * steps)]
    ends = {triple: place // entering for place, triple in enumerate(stream[:window])}
    kept = Maintained(parse_datalog(TRANSITIVE), stream[:window], ends=ends, counting=True)
    kept.store.visits[0] = moved = 0
    for number in range(steps):
        new = stream[window + number * entering : window + (number + 1) * entering]
        old = stream[number * entering : (number + 1) * entering]
        kept.go(number, dict.fromkeys(new, window // entering + number), old)
        moved += sum(len(changes.added) + len(changes.removed) for changes in kept.store.overlay.touched)
        kept.commit()
    return (kept.store.visits[0] + moved) / (entering * steps)


IS_IN_LASTS = """HOLD <urn:isIn> FOR 1 s
QUERY Inside := { SELECT ?x ?y WHERE { ?x <urn:isIn> ?y } }
RULE Came DEFINE { dotr_c a <urn:Came> } FROM B := ISTREAM Inside WITH ?x := B.?x, ?y := B.?y
"""


def replaced_step(window: int, share: float, steps: int = 9) -> dict[str, float]:
    """Median milliseconds of a message that deletes so much of a window and inserts as much, events included;
    of the same where everything is maintained, whatever ends; and of M as it is closed when a run begins.
    """
    entering = int(window * share)
    pool = trees(2 * window, window)
    stream = [pool[place % len(pool)] for place in range(window + entering * (steps + 1))]
    program = parse_program(IS_IN_LASTS)
    program = replace(program, datalog=tuple(parse_datalog(TRANSITIVE)))
    took: dict[str, list[float]] = {"replaced": [], "maintained": [], "closed": []}
    told: list[list[int]] = []
    for name in ("replaced", "maintained"):
        with patch.object(maintenance, "_FEW", maintenance._FEW if name == "replaced" else 10**9):
            pipeline = Pipeline(Deployment(program, stream[:window]))
            pipeline.begin(Clock())
            events = []
            for number in range(steps):
                old = stream[number * entering : (number + 1) * entering]
                new = stream[window + number * entering : window + (number + 1) * entering]
                message = Message(None, new, old)
                begun = process_time()
                pipeline.take(number, message)
                events.append(len(pipeline.advance(number)))
                took[name].append(process_time() - begun)
            told.append(events)
    assert told[0] == told[1]
    some = stream[-window:]
    took["closed"] = [
        timed(lambda: lasting_model(program, some, Clock(), materialize_all=False)) for _ in range(5)
    ]
    return {name: median(seconds[2:]) * 1e3 for name, seconds in took.items()}


def look_ns(pairs: int, looks: int = 20_000) -> float:
    """Nanoseconds of one look for a pair of terms in a dict of so many: what the machine's memory asks of any
    program whose state is so large.
    """
    draw = random.Random(pairs)
    terms = [f"<urn:t{number}>" for number in range(pairs)]
    held = dict.fromkeys((terms[number], draw.choice(terms)) for number in draw.sample(range(pairs), pairs))
    asked = draw.choices(list(held), k=looks)

    def look() -> None:
        for subject, object_ in asked:
            held[subject, object_]

    def do_without() -> None:
        for subject, object_ in asked:
            (subject, object_)  # noqa: B018  # what a look costs beside it

    return (median(timed(look) for _ in range(5)) - median(timed(do_without) for _ in range(5))) / looks * 1e9


# -- volz


def ontology(kind: str, depth: int, facts: int) -> tuple[str, list[Triple]]:
    """(rules, facts): a taxonomy of classes, one with properties and domains (database), or with existential
    chains folded into rules (DL-like).
    """
    draw = random.Random(depth)
    layer, rules, classes = ["c"], [], ["c"]
    for _ in range(depth):
        below = [f"{name}_{child}" for name in layer for child in range(3)]
        rules += [f"[?x, a, <urn:{name[: name.rindex('_')]}>] :- [?x, a, <urn:{name}>] ." for name in below]
        classes += below
        layer = below
    if kind != "taxonomy":
        for number, name in enumerate(layer[:: 1 if kind == "dl" else 3]):
            rules.append(f"[?x, a, <urn:{name}>] :- [?x, <urn:p{number % 7}>, ?y] .")
    if kind == "dl":
        rules += [f"[?x, <urn:p{n}>, ?z] :- [?x, <urn:p{n}>, ?y], [?y, <urn:q{n}>, ?z] ." for n in range(7)]
    found: dict[Triple, None] = {}
    while len(found) < facts:
        one = f"<urn:i{draw.randrange(facts)}>"
        if kind == "taxonomy" or draw.random() < 0.5:
            found[one, RDF_TYPE, f"<urn:{draw.choice(classes)}>"] = None
        else:
            name = f"<urn:{draw.choice('pq' if kind == 'dl' else 'p')}{draw.randrange(7)}>"
            found[one, name, f"<urn:i{draw.randrange(facts)}>"] = None
    return "\n".join(rules) + "\n", list(found)


def volz_kind(kind: str, depth: int, facts: int, rules: int) -> dict[str, float]:
    """Milliseconds of recomputation, and of changes as a share of it."""
    text, triples = ontology(kind, depth, facts)
    parsed = parse_datalog(text)
    seconds = [timed(lambda: Materialiser(parsed, triples)) for _ in range(3)]
    again = median(seconds)
    row: dict[str, float] = {"recomputed ms": again * 1e3}
    kept = Maintained(parsed, triples)
    draw = random.Random(1)
    kinds = list({relation_of(*triple): triple for triple in triples}.values())

    def change(insert: Sequence[Triple], delete: Sequence[Triple]) -> None:
        kept.open(insert, delete)
        kept.commit()

    def set_up() -> None:
        change((), kinds)
        change(kinds, ())

    row["set up"] = timed(set_up) / again  # the maintenance program: code for every relation that changes
    for share in (0.10, 0.15):
        some = draw.sample(triples, int(len(triples) * share))
        removed, added = timed(lambda some=some: change((), some)), timed(lambda some=some: change(some, ()))  # type: ignore[misc]
        row[f"facts {share:.0%}"] = max(removed, added) / again
    row |= single_facts(kept, draw.sample(triples, 100))
    kb = KnowledgeBase(triples)
    kb.update(add_rules=text)
    lines = text.splitlines(keepends=True)
    took = []
    gc.collect()
    gc.freeze()  # as above
    for line in draw.sample(lines, min(rules, len(lines))):
        took.append(timed(lambda line=line: kb.update(remove_rules=line)))  # type: ignore[misc]
        took.append(timed(lambda line=line: kb.update(add_rules=line)))  # type: ignore[misc]
    gc.unfreeze()
    assert len(kept) == len(kb) == len(Materialiser(parsed, triples).background)
    row["rule median"], row["rule worst"] = median(took) / again, max(took) / again
    asked = [timed(lambda: list(kb.query("SELECT ?x { ?x a <urn:c_0> }"))) for _ in range(5)]
    row["query ms"] = median(asked) * 1e3  # of a class on the first level, as in the paper, materialised
    return row


def single_facts(kept: Maintained, facts: Sequence[Triple]) -> dict[str, float]:
    """Microseconds of a fact that goes or comes, and of one row that does for it: what it derives as well."""
    seconds: list[float] = []
    rows: list[float] = []
    for fact in facts:
        for change in ((), [fact]), ([fact], ()):
            start = process_time()
            kept.open(*change)
            opened = process_time()
            rows.append(sum(len(c.added) + len(c.removed) for c in kept.store.overlay.touched))
            counted = process_time()
            kept.commit()
            seconds.append(process_time() - counted + opened - start)
    each = [took / count for took, count in zip(seconds, rows, strict=True) if count]
    return {"fact us": median(seconds) * 1e6, "row us": median(each) * 1e6}


def volz_sizes(kind: str, depth: int, sizes: Sequence[int]) -> dict[int, dict[str, float]]:
    """Single facts among so many of them."""
    found = {}
    for facts in sizes:
        text, triples = ontology(kind, depth, facts)
        kept = Maintained(parse_datalog(text), triples)
        some = random.Random(2).sample(triples, 200)
        single_facts(kept, some)  # what compiles lazily has
        found[facts] = single_facts(kept, some)
    return found


# -- delta


def messages(count: int, people: int, seed: int = 7) -> Iterator[tuple[int, Triple]]:
    """(second, who wrote to whom): few busy people and many quiet ones."""
    draw = random.Random(seed)
    time = 0
    for _ in range(count):
        time += draw.randrange(1, 60)
        a, b = (int(people * draw.random() ** 3) for _ in range(2))
        yield time, (f"<urn:p{a}>", "<urn:wrote>", f"<urn:p{b if b != a else (b + 1) % people}>")


PATTERNS = {
    "ground": "SELECT DISTINCT * WHERE { <urn:p1> <urn:wrote> <urn:p2> . <urn:p2> <urn:wrote> <urn:p3> }",
    "star": "SELECT DISTINCT ?x WHERE { ?x <urn:wrote> <urn:p1> . ?x <urn:wrote> <urn:p2> }",
    "loose": "SELECT DISTINCT ?x ?y WHERE { ?x <urn:wrote> <urn:p1> . <urn:p2> <urn:wrote> ?y }",
    "connected": "SELECT DISTINCT ?x ?y WHERE "
    "{ <urn:p1> <urn:wrote> ?x . ?x <urn:wrote> ?y . ?y <urn:wrote> ?x }",
}
DAY = 86_400


def updates(count: int, people: int) -> list[tuple[list[Triple], list[Triple]]]:
    """(what comes, what goes) a message, a day after the last one of a pair."""
    found: list[tuple[list[Triple], list[Triple]]] = []
    until: dict[Triple, int] = {}
    ends: deque[tuple[int, Triple]] = deque()
    for time, triple in messages(count, people):
        gone = []
        while ends and ends[0][0] <= time:
            end, old = ends.popleft()
            if until.get(old) == end:
                del until[old]
                gone.append(old)
        new = [] if triple in until else [triple]
        gone = [old for old in gone if old != triple] if not new else gone
        until[triple] = time + DAY
        ends.append((time + DAY, triple))
        found.append((new, [old for old in gone if old not in new]))
    return found


def model_of(query: str) -> MaintainedModel:
    return lasting_model(watching(Program(), parse_query(query)), [], Clock(), materialize_all=False)


_SEEN: frozenset[str] = frozenset({"<urn:p1>", "<urn:p2>"})


def _look(begun: Iterable[Triple], ended: Iterable[Triple]) -> bool:
    """The least that Python can do with an update: take each triple apart, and look for it."""
    for triples in begun, ended:
        for subject, _, object_ in triples:
            if subject in _SEEN and object_ in _SEEN:
                return True
    return False


def delta_pattern(
    query: str, changes: Sequence[tuple[list[Triple], list[Triple]]], asked: int
) -> dict[str, float]:
    """Microseconds an update: signed changes, and asking pyoxigraph again after some of them: the store that
    went along (one in memory remembers what was removed, and is asked the slower the more it was), and a new
    one of what there is.
    """
    model = model_of(query)
    steps = [(dict.fromkeys(new, FOREVER), old) for new, old in changes]
    quads = [(list(map(quad, new)), list(map(quad, old))) for new, old in changes]
    answers = 0
    gc.collect()
    start = process_time()
    for begun, ended in steps:
        if moved := model.change(begun, ended, 0).differences:
            answers += sum(n for rows in moved.values() for _, n in rows)
    ours = (process_time() - start) / len(changes)
    start = process_time()
    for begun, ended in steps:
        _look(begun, ended)
    floor = (process_time() - start) / len(changes)
    store = ox.Store()
    every = max(1, len(changes) // asked)
    again: list[float] = []
    anew: list[float] = []
    last: set[str] = set()
    for number, (come, gone) in enumerate(quads):
        start = process_time()
        for one in gone:
            store.remove(one)
        for one in come:
            store.add(one)
        if number % every == 0 or number == len(changes) - 1:
            now = {str(row) for row in store.query(query)}  # type: ignore[union-attr]  # a SELECT
            _signed = now - last, last - now
            again.append(process_time() - start)
            last = now
            if len(again) % 5 == 0 or number == len(changes) - 1:
                new = ox.Store()
                new.extend(store)
                anew.append(timed(lambda new=new: {str(row) for row in new.query(query)}))  # type: ignore[misc]
    assert answers == len(last), f"{answers} answers by changes, {len(last)} asked again"
    return {
        "floor us": floor * 1e6,
        "ours us": ours * 1e6,
        "again us": median(again) * 1e6,
        "in a new store us": median(anew) * 1e6,
        "answers": float(answers),
    }


# -- windows

JOIN = """PREFIX : <urn:>
HOLD :reads FOR 3 s
HOLD :moves FOR 10 s
QUERY Both := { SELECT ?s ?v ?r WHERE { ?s :reads ?v . ?s :in ?r . ?who :moves ?r } }
RULE Pair DEFINE { dotr_p a :Pair ; :in ?r } FROM B := ISTREAM Both WITH ?r := B.?r
"""


def windows_rate(seconds: int, rate: int, rooms: int = 500) -> dict[str, float]:
    """Microseconds a triple of two joined streams, `rate` triples a second, graphs of ten."""
    draw = random.Random(3)
    background = [(f"<urn:s{n}>", "<urn:in>", f"<urn:r{n % rooms}>") for n in range(4 * rooms)]
    engine = Engine.from_text(
        JOIN.replace("{{", "{").replace("}}", "}"), background=background, time_unit="ms"
    )
    stream = []
    for number in range(seconds * rate // 10):
        graph = []
        for place in range(10):
            sensor, room = f"<urn:s{draw.randrange(4 * rooms)}>", f"<urn:r{draw.randrange(rooms)}>"
            if place % 2:
                graph.append((sensor, "<urn:reads>", f'"{draw.randrange(100)}"'))
            else:
                graph.append((f"<urn:p{draw.randrange(rooms)}>", "<urn:moves>", room))
        stream.append((number * 10_000 // rate, graph))
    gc.collect()
    events = 0
    start = process_time()
    for time, graph in stream:
        events += len(engine.push(graph, at=time))
    took = process_time() - start
    return {"us": took / (10 * len(stream)) * 1e6, "events": float(events), "of real time": took / seconds}
