"""Checks of HOLD, ISTREAM and DSTREAM, and of queries that match nothing or the same facts again.

Place:   called by names.py, and the vocabulary by `dotr check` when it has read the background, and a sample
         of the stream if one is given. `Program.holds` is what `check_holds` makes of the lines that
         loading.py found.
Method:  language.md, "What lasts". One meaning for each predicate and class of a deployment: equal lines are
         one line, different ones an error.
         Vocabulary: a required triple pattern with a constant predicate (or class) needs a triple with it:
         from the background, a Datalog head, or the stream. Without a sample the stream may bring anything;
         then only a term that nearly equals one of the background is reported.
         Repeated facts: a query over held triples alone has all its answers at every graph, so that EACH,
         COUNT, SUM and AVG over a window of more than an instant meet an old answer once per graph, D1329. Of
         two equal facts of one instant each is a candidate of the other's `NOT … WITHIN d FROM`, so that
         neither has an event, D1330; not reported where a part of ON is false for twins, nor where DISTINCT
         leaves one fact for what ON equates.
Why not: checking derived and background triples one by one: a query that also reads triples that are not held
         is not reported, since an answer then needs a triple of the instant or of the background.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import SequenceMatcher
from typing import Any, Final, assert_never

from msgspec import Struct, field

from dotr import program
from dotr.detect.analysis import names, parts
from dotr.errors import Diagnostics
from dotr.extract.algebra import relations_of
from dotr.joins.plan import ALL, Relation, class_relation, relation_of
from dotr.lang.checks.scopes import has_aggregate
from dotr.lang.grammar.syntax import EffectSyntax, Held, HeldClass, HeldPredicate, HeldRest, HoldSyntax
from dotr.lang.loading import LoadedFile
from dotr.program import (
    Absent,
    AnyTerm,
    Atom,
    Attribute,
    Call,
    Choose,
    Conjunct,
    Expression,
    Fresh,
    Hold,
    Operator,
    PatternNode,
    PatternTriple,
    Program,
    RelationToStream,
    Rule,
    Select,
    Summarise,
    TemplateTriple,
    TemplateVar,
    TimeOf,
    Var,
    Within,
)
from dotr.rdf.terms import OWL, RDF_TYPE, RDFS, Term, Triple, is_iri
from dotr.source import PLACES, Span


def check_holds(lines: Iterable[tuple[LoadedFile, HoldSyntax]], found: Diagnostics) -> tuple[Hold, ...]:
    """What lasts, one Hold for each predicate and class, in the order of the lines."""
    known: dict[Held, Hold] = {}
    for unit, line in lines:
        if line.start is not None and line.start == line.until:
            found.error(
                "D1508",
                "what ends at the time at which it begins is never held",
                line.until.span,
                hint="name two predicates, or leave FROM or UNTIL out",
            )
        for held in line.held:
            if _allowed(unit, line, held, found):
                _add(held, _hold(line, held), known, found)
    holds = tuple(known.values())
    if not any(hold.predicate is None for hold in holds):
        for hold in holds:
            if hold.duration == 0:
                found.warning(
                    "D1505",
                    "this HOLD has no effect",
                    hold.span,
                    hint="delete the line, or add the line that it is an exception to: `HOLD * FOR …`",
                    notes=("FOR 0 s is an exception to `HOLD *`, and there is no such line",),
                )
    return holds


def patterns_of(
    effect: EffectSyntax, bound: Collection[str], found: Diagnostics
) -> tuple[tuple[PatternTriple, ...], bool]:
    """The triples of DELETE, in which a variable that WITH does not bind is any term; and whether none is
    wrong.
    """
    triples: list[PatternTriple] = []
    first: dict[str, TemplateTriple] = {}
    whole = True
    for triple in effect.triples:
        nodes: list[PatternNode] = []
        for node in (triple.subject, triple.predicate, triple.object):
            if isinstance(node, Fresh):
                found.warning(
                    "D1511",
                    f"`{node.name}` is new, so no triple with it is stated",
                    triple.span,
                    hint="write a variable that WITH does not bind, which is any term",
                )
            if isinstance(node, TemplateVar) and node.name not in bound:
                if first.setdefault(node.name, triple) is not triple:
                    whole = False
                    found.error(
                        "D1510",
                        f"`?{node.name}` is in two triples of DELETE, and WITH does not bind it",
                        triple.span,
                        "each triple of DELETE matches by itself",
                        hint=f"bind it in WITH, or write another variable: `?{node.name}2`",
                    )
                nodes.append(AnyTerm(node.name))
            else:
                nodes.append(node)
        subject, predicate, object_ = nodes
        triples.append(PatternTriple(subject, predicate, object_, triple.span))
    return tuple(triples), whole


def check_effects(rules: Iterable[Rule], holds: Iterable[Hold], found: Diagnostics) -> None:
    """Report an INSERT of what a HOLD says is not held."""
    never = {(hold.predicate, hold.class_) for hold in holds if hold.duration == 0}
    for rule in rules:
        for triple in rule.inserts:
            if not isinstance(triple.predicate, str):
                continue
            class_ = (
                triple.object if triple.predicate == RDF_TYPE and isinstance(triple.object, str) else None
            )
            if (triple.predicate, class_) in never:
                found.error(
                    "D1512",
                    "INSERT states what `FOR 0 s` says is not held",
                    triple.span,
                    hint="delete the HOLD line, or the triple",
                )


def _hold(line: HoldSyntax, held: Held) -> Hold:
    duration = None if line.duration is None else line.duration.micros
    begin, end = (None if one is None else one.iri for one in (line.start, line.until))
    match held:
        case HeldPredicate(iri, span):
            return Hold(iri, None, line.latest, duration, begin, end, span)
        case HeldClass(iri, span):
            return Hold(RDF_TYPE, iri, line.latest, duration, begin, end, span)
        case HeldRest(span):
            return Hold(None, None, line.latest, duration, begin, end, span)
        case _:
            assert_never(held)


def _allowed(unit: LoadedFile, line: HoldSyntax, held: Held, found: Diagnostics) -> bool:
    match held:
        case HeldPredicate(iri, span) if iri == RDF_TYPE:
            found.error("D1502", "membership is held class by class", span, hint="write `HOLD a :Class`")
            return False
        case HeldRest(span) if unit.parent is not None:
            found.error(
                "D1504",
                "a library may not set how long everything lasts",
                span,
                hint="name the predicates and classes that its rules need",
            )
            return False
        case HeldClass(_, span) | HeldRest(span) if line.latest:
            what = "a class" if isinstance(held, HeldClass) else "everything"
            found.error(
                "D1501",
                f"LATEST is for a predicate, not for {what}",
                span,
                hint="write `HOLD :predicate LATEST`: it is replaced by the next value of the same subject",
            )
            return False
        case _:
            return True


def _add(held: Held, hold: Hold, known: dict[Held, Hold], found: Diagnostics) -> None:
    other = known.setdefault(held, hold)
    if other != hold:
        found.error(
            "D1503",
            f"{_shown(hold.span)} is held in two ways",
            hold.span,
            hint="keep one of the lines",
            notes=(f"the other is at {other.span}",),
        )


def _shown(span: Span | None) -> str:
    return "this" if span is None else f"`{span.source.text[span.start : span.end]}`"


def check_standing(operator: RelationToStream, select: Select, span: Span, found: Diagnostics) -> None:
    """What lasts does not change because time goes by."""
    if asks_now(select):
        found.error(
            "D1507",
            f"NOW() has no value under {operator}",
            span,
            hint="compare with the time of the event, in ON or WHERE; what ends at a time that the data have "
            "is `HOLD :p UNTIL :end`",
            notes=(f"{operator} compares answers over what lasts whenever it changes",),
        )


def asks_now(value: Any) -> bool:
    """Whether NOW() occurs anywhere below a syntax node."""
    if isinstance(value, Call) and value.function == "NOW":
        return True
    if isinstance(value, tuple):
        return any(map(asks_now, value))
    return isinstance(value, Struct) and any(
        asks_now(getattr(value, name)) for name in value.__struct_fields__ if name not in PLACES
    )


class Vocabulary(Struct):
    """Predicates and classes that occur, IRIs that schema triples speak of (either may follow), and all terms
    that are called something.
    """

    predicates: set[Term] = field(default_factory=set)
    classes: set[Term] = field(default_factory=set)
    schema: set[Term] = field(default_factory=set)
    terms: set[Term] = field(default_factory=set)
    anything: bool = False

    def add(self, triples: Iterable[Triple]) -> None:
        terms = self.terms
        for subject, predicate, object_ in triples:
            self.predicates.add(predicate)
            terms.update((subject, predicate, object_))
            if predicate == RDF_TYPE:
                self.classes.add(object_)
            if predicate.startswith((f"<{RDFS}", f"<{OWL}")):
                self.schema.update((subject, object_))

    def knows(self, predicate: Term, class_: Term | None) -> bool:
        """Whether a triple with this predicate (and, for rdf:type, class) can be there."""
        word, words = (class_, self.classes) if class_ is not None else (predicate, self.predicates)
        return self.anything or word in words or word in self.schema


def add_heads(program: program.Program, vocabulary: Vocabulary) -> None:
    """Add what Datalog heads derive and what events state. A variable predicate or class of a head derives
    what the schema names, one of an INSERT anything.
    """
    for stated in (triple for each in program.rules for triple in each.inserts):
        vocabulary.terms.update(
            node for node in (stated.subject, stated.predicate, stated.object) if isinstance(node, str)
        )
        if isinstance(stated.predicate, str):
            vocabulary.predicates.add(stated.predicate)
        if stated.predicate == RDF_TYPE and isinstance(stated.object, str):
            vocabulary.classes.add(stated.object)
        elif not isinstance(stated.predicate, str) or stated.predicate == RDF_TYPE:
            vocabulary.anything = True
    for rule in program.datalog:
        for head in rule.heads:
            vocabulary.terms.update(
                t for t in (head.subject, head.predicate, head.object) if isinstance(t, str)
            )
            if isinstance(head.predicate, Var):
                continue  # instantiated over the schema: `Vocabulary.schema`
            vocabulary.predicates.add(head.predicate)
            if head.predicate == RDF_TYPE and isinstance(head.object, str):
                vocabulary.classes.add(head.object)


def check_vocabulary(
    program: program.Program, vocabulary: Vocabulary, *, sampled: bool, found: Diagnostics
) -> None:
    """Warn about queries that need what is not there; without a sample, remark on near misses."""
    if sampled:
        _check_times(program, vocabulary, found)
    for name, select in program.written.items():
        for predicate, class_, span in _unknown(select, vocabulary):
            word = class_ or predicate
            words = vocabulary.classes if class_ is not None else vocabulary.predicates
            likely = near_names(word, words)
            kind = "class" if class_ is not None else "predicate"
            hint = f"did you mean {likely}?" if likely else ""
            if sampled:
                found.warning(
                    "D1220",
                    f"nothing can match the query `{name}`: no triple has the {kind} {word}",
                    span,
                    hint=hint,
                    notes=("it is neither in the background, nor in a Datalog head, nor in the sample",),
                )
            elif likely:
                found.info(
                    "D1223",
                    f"the {kind} {word} is not known from the background",
                    span,
                    hint=hint,
                    notes=("it is correct if the stream has it; `--sample SOURCE` checks the stream, too",),
                )


def _check_times(program: program.Program, vocabulary: Vocabulary, found: Diagnostics) -> None:
    """Warn of FROM and UNTIL whose predicate nothing has."""
    for hold in program.holds:
        for word, predicate in (("FROM", hold.start), ("UNTIL", hold.until)):
            if predicate is None or vocabulary.knows(predicate, None):
                continue
            likely = near_names(predicate, vocabulary.predicates)
            found.warning(
                "D1509",
                f"{word} has no effect: no triple has the predicate {predicate}",
                hold.span,
                hint=f"did you mean {likely}?" if likely else "",
                notes=(f"what has no time there is held as without {word}",),
            )


def near_names(word: Term, words: Iterable[Term]) -> str:
    """The known IRI that a word was probably meant to be: spelled almost so in the same namespace, or so in
    another one.
    """
    space, local = _split(word)
    best, best_ratio = "", 0.8
    for known in sorted(words):
        if known == word or not is_iri(known):
            continue
        other_space, other = _split(known)
        ratio = 0.0
        if other_space == space and abs(len(other) - len(local)) <= 3 and not _numbered(local, other):
            matcher = SequenceMatcher(None, local.lower(), other.lower())
            ratio = matcher.ratio() if matcher.real_quick_ratio() > best_ratio else 0.0
        elif other == local and len(local) > 2:
            ratio = 0.95
        if ratio > best_ratio:
            best, best_ratio = known, ratio
    return best


def _numbered(one: str, other: str) -> bool:
    """`room1` and `room2` are two things, not a slip of the pen."""
    return one != other and one.rstrip("0123456789") == other.rstrip("0123456789")


def _split(word: Term) -> tuple[str, str]:
    cut = max(word.rfind("#"), word.rfind("/"), word.rfind(":")) + 1
    return word[:cut], word[cut:-1]


def required_patterns(select: program.Select) -> Iterator[program.TriplePattern]:
    """The triple patterns without which a query has no answer."""
    aggregates = any(p.expression is not None and has_aggregate(p.expression) for p in select.projection)
    if select.group_by or not aggregates:
        yield from _required(select.where)


def _required(group: program.GroupPattern) -> Iterator[program.TriplePattern]:
    for element in group.elements:
        match element:
            case program.Triples(patterns):
                yield from patterns
            case program.GroupPattern():
                yield from _required(element)
            case program.SubSelect(select):
                yield from required_patterns(select)
            case _:
                continue


_Need = tuple[Term, Term | None, Span | None]


def _unknown(select: program.Select, vocabulary: Vocabulary) -> Iterator[_Need]:
    aggregates = any(p.expression is not None and has_aggregate(p.expression) for p in select.projection)
    if select.group_by or not aggregates:  # an aggregate without groups has a row even of nothing
        yield from _group(select.where, vocabulary)


def _group(group: program.GroupPattern, vocabulary: Vocabulary) -> Iterator[_Need]:
    """What a group needs and nothing has. OPTIONAL, MINUS and EXISTS need nothing here."""
    for element in group.elements:
        match element:
            case program.Triples(patterns):
                for pattern in patterns:
                    yield from _pattern(pattern, vocabulary)
            case program.GroupPattern():
                yield from _group(element, vocabulary)
            case program.SubSelect(select):
                yield from _unknown(select, vocabulary)
            case program.Union(branches):
                missing = [list(_group(branch, vocabulary)) for branch in branches]
                if all(missing):
                    yield missing[0][0]
            case _:
                continue


def _pattern(pattern: program.TriplePattern, vocabulary: Vocabulary) -> Iterator[_Need]:
    predicate = pattern.predicate
    if isinstance(predicate, program.Var):
        return
    if predicate == RDF_TYPE:
        class_ = pattern.object
        if isinstance(class_, str) and is_iri(class_) and not vocabulary.knows(RDF_TYPE, class_):
            yield RDF_TYPE, class_, pattern.span
        return
    for step in _needed(predicate):
        if not vocabulary.knows(step, None):
            yield step, None, pattern.span


def _needed(path: program.Path) -> Iterator[Term]:
    """Predicates without which a path leads nowhere."""
    match path:
        case str():
            yield path
        case program.Inverse(inner):
            yield from _needed(inner)
        case program.Sequence(paths):
            for step in paths:
                yield from _needed(step)
        case program.Repeat(inner, minimum):
            if minimum:
                yield from _needed(inner)
        case program.Alternative() | program.NegatedSet():
            return
        case _:
            assert_never(path)


_REPEATABLE: Final = frozenset(("MIN", "MAX"))
"""Aggregates that are the same whether a value comes once or twice."""
_UNEQUAL: Final = frozenset(("<", ">", "!="))


def check_repeats(program: Program, found: Diagnostics) -> None:
    """Warn about both."""
    for rule in program.rules:
        for conjunct in rule.conjuncts:
            if _meets_again(conjunct) and _lasts(program, conjunct.position.stream):
                _report_again(conjunct, found)
            elif isinstance(conjunct, Absent) and _cancels(program, rule, conjunct):
                _report_twins(rule, conjunct, found)


# -- what lasts --------------------------------------------------------------------------------------


def _meets_again(conjunct: Conjunct) -> bool:
    window = conjunct.window
    if isinstance(window, Within) and window.duration == 0:
        return False
    if isinstance(conjunct, Choose):
        return conjunct.operator is Operator.EACH and not conjunct.per
    return isinstance(conjunct, Summarise) and not conjunct.distinct and conjunct.function not in _REPEATABLE


def _lasts(program: Program, stream: str) -> bool:
    """Whether a stream is a plain query over held triples alone."""
    select = program.selects.get(stream)
    if not (program.holds or program.has_effects) or select is None or stream in program.standing:
        return False
    read = relations_of(select)
    held = _Held(program)
    return bool(read) and all(map(held.lasts, read))


class _Held:
    """Owns which relations last, and which follow from these alone."""

    def __init__(self, program: Program) -> None:
        lines = {_relation(hold.predicate, hold.class_): hold.duration != 0 for hold in program.holds}
        self._rest = lines.pop(ALL, False)
        for triple in (triple for rule in program.rules for triple in rule.inserts):
            if isinstance(triple.predicate, str) and isinstance(triple.object, str):
                class_ = triple.object if triple.predicate == RDF_TYPE else None
                lines.setdefault(_relation(triple.predicate, class_), True)
            elif isinstance(triple.predicate, str) and triple.predicate != RDF_TYPE:
                lines.setdefault(triple.predicate, True)
        self._lines = lines
        self._derived: set[Relation] = set()
        heads = {_of(head) for rule in program.datalog for head in rule.heads}
        self._heads = heads - lines.keys()
        before = -1
        while before < len(self._derived):
            before = len(self._derived)
            for rule in program.datalog:
                body = [_of(atom) for atom in rule.body if isinstance(atom, Atom)]
                if body and all(map(self.lasts, body)):
                    self._derived.update(map(_of, rule.heads))

    def lasts(self, relation: Relation) -> bool:
        if relation in self._lines:
            return self._lines[relation]
        if relation in self._heads:
            return relation in self._derived
        return self._rest


def _relation(predicate: str | None, class_: str | None) -> Relation:
    if class_ is not None:
        return class_relation(class_)
    return ALL if predicate is None else predicate


def _of(atom: Atom) -> Relation:
    return relation_of(atom.subject, atom.predicate, atom.object)


def _report_again(conjunct: Conjunct, found: Diagnostics) -> None:
    name, stream = conjunct.position.name, conjunct.position.stream
    query = "{ … }" if "." in stream else stream  # written where it is used
    what = f"{conjunct.function} counts" if isinstance(conjunct, Summarise) else "EACH takes"
    found.warning(
        "D1329",
        f"{what} what lasts again at every graph",
        conjunct.position.span,
        hint=f"take an answer once, as it begins: `Begun := ISTREAM {query}`; or what holds now: WITHIN 0 s",
        notes=(f"`{name}` asks for held triples: at each graph in the window it has all its answers",),
    )


# -- twins -------------------------------------------------------------------------------------------


def _cancels(program: Program, rule: Rule, absent: Absent) -> bool:
    """Whether two facts of one instant can each be what the other must not have."""
    window, own = absent.window, absent.position
    if not isinstance(window, Within) or window.before or own.chained:
        return False
    reference = next((p for p in rule.positions if p.name == window.reference), None)
    if reference is None or reference.stream != own.stream:
        return False
    equated: set[str] = set()
    for part in parts(absent.on):
        if not names(part) <= {own.name, reference.name}:
            return False  # what another event says may be true of one twin alone
        sides = _sides(part, own.name, reference.name)
        if sides is None:
            continue
        if sides[0] in _UNEQUAL:
            return False
        if sides[0] == "=":
            equated.add(sides[1])
    select = program.selects.get(own.stream)
    return select is None or not (select.distinct and equated >= set(own.variables))


def _sides(part: Expression, own: str, reference: str) -> tuple[str, str] | None:
    """(operator, attribute) where a part compares one attribute, or the time ("."), of the two facts."""
    if not (isinstance(part, Call) and len(part.arguments) == 2):
        return None
    found = []
    for side in part.arguments:
        if isinstance(side, TimeOf):
            found.append((side.position, "."))
        elif isinstance(side, Attribute):
            found.append((side.position, side.variable))
    if len(found) != 2 or found[0][1] != found[1][1] or {found[0][0], found[1][0]} != {own, reference}:
        return None
    return part.function, found[0][1]


def _report_twins(rule: Rule, absent: Absent, found: Diagnostics) -> None:
    name = absent.position.name
    assert isinstance(absent.window, Within)
    reference = absent.window.reference
    found.warning(
        "D1330",
        f"two facts of one instant cancel each other: each is the other's `{name}`",
        absent.position.span,
        hint=f"look back with `BEFORE {reference}`, and select DISTINCT what makes one fact of both",
        notes=(f"WITHIN … FROM includes the instant of `{reference}`, except for that fact itself",),
    )
