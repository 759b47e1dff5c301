"""A solution of a query with the triples that its patterns matched.

Method:  the algebra of the query is evaluated again, without plans, with the fact's values substituted for
         the projected variables; each solution carries the triples that it rests on (Green, Karvounarakis,
         Tannen 2007: one monomial of the why-provenance). Of several solutions the one with the smallest
         proofs is taken.
         For a property path that repeats (`*`, `+`, `?`) or is a negated set, the premises are the triples of
         a shortest walk between its ends, found breadth first (SPARQL 1.1, sec. 9.3: a path of length zero
         joins a node with itself).
Why not: the compiled plans: they keep only the projected variables, and queries share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, assert_never, cast

from msgspec import Struct
from msgspec.structs import replace

from dotr import program
from dotr.explain.derivations import Derivations, walk
from dotr.explain.proofs import NotThen, SolutionProof
from dotr.expressions.evaluate import compile_condition, compile_expression
from dotr.extract import algebra
from dotr.extract.algebra import Translated, Uncompiled, translate
from dotr.extract.operators import aggregate as total
from dotr.extract.sharing import attributes
from dotr.joins.plan import ALL, View, expression_variables, plan, triple_pattern
from dotr.joins.store import TripleIndex
from dotr.program import Alternative, Inverse, NegatedSet, Path, Repeat, Var
from dotr.program import Sequence as SequencePath
from dotr.rdf.terms import RDF_TYPE, Term, Triple, integer
from dotr.rdf.values import values_key

Walks: TypeAlias = dict[Term, tuple[Triple, ...]]
"""Node → the triples of a shortest walk to it."""


def walks(path: Path, start: Term, store: TripleIndex, backwards: bool = False) -> Walks:
    """The nodes that a path leads to from `start` (`backwards`: from which it leads there)."""
    match path:
        case str():
            return {
                (s if backwards else o): ((s, path, o),) for s, o in _pairs(path, start, store, backwards)
            }
        case Inverse(inner):
            return walks(inner, start, store, not backwards)
        case SequencePath(paths):
            found: Walks = {start: ()}
            for part in reversed(paths) if backwards else paths:
                found = _extended(found, part, store, backwards)
            return found
        case Alternative(paths):
            found = {}
            for part in paths:
                _keep(found, walks(part, start, store, backwards).items())
            return found
        case Repeat(inner, minimum, unbounded):
            found = {start: ()} if minimum == 0 else {}
            frontier: Walks = {start: ()}
            while frontier:
                reached = _extended(frontier, inner, store, backwards)
                frontier = {node: walk for node, walk in reached.items() if node not in found}
                found |= frontier
                if not unbounded:
                    break
            return found
        case NegatedSet(forward, inverse):
            found = {}
            if forward or not inverse:
                _keep(found, _others(frozenset(forward), start, store, backwards))
            if inverse:
                _keep(found, _others(frozenset(inverse), start, store, not backwards))
            return found
        case _:
            assert_never(path)


def _extended(found: Walks, path: Path, store: TripleIndex, backwards: bool) -> Walks:
    longer: Walks = {}
    for node, taken in found.items():
        _keep(longer, ((n, (*taken, *more)) for n, more in walks(path, node, store, backwards).items()))
    return longer


def _keep(found: Walks, more: Iterable[tuple[Term, tuple[Triple, ...]]]) -> None:
    """The shorter walk to each node."""
    for node, taken in more:
        if node not in found or len(taken) < len(found[node]):
            found[node] = taken


def _pairs(predicate: Term, start: Term, store: TripleIndex, backwards: bool) -> list[tuple[Term, Term]]:
    pattern = triple_pattern(Var("s"), predicate, Var("o"))
    row = [None, start] if backwards else [start, None]
    return [(s, o) for s, o in store.find(pattern.relation, row, View.NEW)]


def _others(
    excluded: frozenset[Term], start: Term, store: TripleIndex, backwards: bool
) -> list[tuple[Term, tuple[Triple, ...]]]:
    """One triple of any predicate but some."""
    row = [None, None, start] if backwards else [start, None, None]
    triples = sorted((s, p, o) for s, p, o in store.find(ALL, row, View.NEW) if p not in excluded)
    return [((s if backwards else o), ((s, p, o),)) for s, p, o in triples]


def nodes(store: TripleIndex) -> list[Term]:
    """Every subject and object that holds now, in order."""
    rows = store.find(ALL, [None, None, None], View.NEW)
    return sorted({term for s, _, o in rows for term in (s, o)})


MOST = 200
"""Solutions of one fact that are compared."""

Env: TypeAlias = Mapping[str, Term]


class SolutionRow(Struct, frozen=True):
    """A solution on its way: variables, the triples it matched, what was absent, rows of an aggregate."""

    env: Env
    triples: tuple[Triple, ...] = ()
    absent: tuple[str, ...] = ()
    rows: int = 0


def solution(
    select: program.Select, values: Sequence[Term | None], derivations: Derivations, text: Text
) -> SolutionProof:
    """Why `select` has a solution with these values at the open instant."""
    return replace(alternatives(select, values, derivations, text), others=())


def alternatives(
    select: program.Select, values: Sequence[Term | None], derivations: Derivations, text: Text
) -> SolutionProof:
    """As `solution`, with all others that rest on other triples, the smaller ones first."""
    query = translate(select)
    if isinstance(query.core, Uncompiled):
        return SolutionProof(opaque=query.core.reason)
    found = list(islice(_Evaluator(derivations, text).solutions(query, values), MOST))
    if not found:
        return SolutionProof(opaque="its solution was not found again")
    size = derivations.sharing.size
    found.sort(key=lambda row: (sum(size(derivations.proof(t)) for t in row.triples), row.triples))
    made = [
        SolutionProof(
            tuple(derivations.proof(t) for t in dict.fromkeys(row.triples)), tuple(row.absent), row.rows
        )
        for row in {row.triples: row for row in reversed(found)}.values()
    ]
    return replace(made[-1], others=tuple(reversed(made[:-1])))


def count(
    select: program.Select, values: Sequence[Term | None], derivations: Derivations, text: Text
) -> int | None:
    """How many answers have these values at the open instant; None where the query is interpreted, or
    where an order cuts them.
    """
    query = translate(select)
    if select.limit is not None or select.offset or isinstance(query.core, Uncompiled):
        return None
    found = sum(1 for _ in islice(_Evaluator(derivations, text).solutions(query, values), MOST))
    return min(found, 1) if select.distinct else found


def longest_prefix(
    select: program.Select, derivations: Derivations, text: Text
) -> tuple[
    tuple[str, ...],
    int,
    list[Triple],
    tuple[str, ...],
    str,
    tuple[NotThen, ...],
    tuple[Term | None, ...] | None,
]:
    """(the patterns of a query, how many of them from the first have a common solution, triples that are
    nearest to the first pattern that fails; where none does, the filters that are not true for the solution
    for which most are; the values that the first solution gives to variables of the pattern that fails;
    what would match that, but is held at other times; the terms of that pattern, None where it has none, and
    None where none fails or it is a path).
    """
    core = translate(select).core
    if isinstance(core, Uncompiled):
        return (), 0, [], (), "", (), None
    patterns = _first_patterns(core)
    evaluator = _Evaluator(derivations, text)
    count = 0
    last = SolutionRow({})
    for length in range(1, len(patterns) + 1):
        row = next(evaluator.matches(patterns[:length], SolutionRow({})), None)
        if row is None:
            break
        count, last = length, row
    fails = count < len(patterns)
    near = evaluator.nearest(patterns[count], last.env) if fails else []
    bound = evaluator.bound(patterns[count], last.env) if fails else ""
    filters = _filters(core) if patterns and count == len(patterns) else []
    failed = evaluator.untrue(filters, patterns) if filters else ()
    not_then = evaluator.not_then(patterns[count], last.env) if fails else ()
    asked = evaluator.known(patterns[count], last.env) if fails else None
    return tuple(text.pattern(p) for p in patterns), count, near, failed, bound, not_then, asked


def _filters(node: algebra.Algebra) -> list[program.Expression]:
    """The filters over the patterns that every solution must match."""
    match node:
        case algebra.BasicGraphPattern(_, steps):
            return [step.condition for step in steps if isinstance(step, program.Filter)]
        case algebra.FilterOf(inner, condition, patterns):
            return [*_filters(inner), *(() if patterns else (condition,))]
        case algebra.Join(left, right):
            return _filters(left) + _filters(right)
        case algebra.LeftJoin(left) | algebra.MinusOf(left):
            return _filters(left)
        case algebra.UnionOf(branches):
            return _filters(branches[0]) if branches else []
        case algebra.Extend(inner) | algebra.Aggregation(inner):
            return _filters(inner)
        case _:
            assert_never(node)


def _first_patterns(node: algebra.Algebra) -> tuple[algebra.Pattern, ...]:
    """The patterns that every solution must match, or those of the first branch of a union."""
    match node:
        case algebra.BasicGraphPattern(patterns):
            return patterns
        case algebra.Join(left, right):
            return _first_patterns(left) + _first_patterns(right)
        case algebra.LeftJoin(left) | algebra.MinusOf(left):
            return _first_patterns(left)
        case algebra.UnionOf(branches):
            return _first_patterns(branches[0]) if branches else ()
        case algebra.FilterOf(inner) | algebra.Extend(inner) | algebra.Aggregation(inner):
            return _first_patterns(inner)
        case _:
            assert_never(node)


class Text(Struct, frozen=True):
    """How terms and expressions are written."""

    term: Callable[[Term], str]
    expression: Callable[[program.Expression], str]
    path: Callable[[program.Path], str]

    def pattern(self, pattern: algebra.Pattern, env: Env | None = None) -> str:
        """A triple pattern; variables that have a value are that value."""
        subject, object_ = (self._node(node, env or {}) for node in (pattern.subject, pattern.object))
        predicate = pattern.predicate
        middle = (
            self._node(predicate, env or {})
            if isinstance(predicate, (str, program.Var))
            else self.path(predicate)
        )
        return f"{subject} {'a' if predicate == RDF_TYPE else middle} {object_}"

    def _node(self, node: program.Node, env: Env) -> str:
        if not isinstance(node, program.Var):
            return self.term(node)
        return self.term(env[node.name]) if node.name in env else f"?{node.name}"


class _Evaluator:
    """Owns nothing: evaluates algebra over the store of the open instant."""

    def __init__(self, derivations: Derivations, text: Text) -> None:
        self._store = derivations.store
        self._derivations = derivations
        self._text = text

    def solutions(self, query: Translated, values: Sequence[Term | None]) -> Iterator[SolutionRow]:
        """The solutions whose projected variables have these values, as facts have them."""
        core = query.core
        assert not isinstance(core, Uncompiled), "the interpreter keeps no triples"
        wanted = dict(zip(query.outputs, values, strict=True))
        known = algebra.certain(core)  # what an OPTIONAL binds must not be given to it
        given = {
            name: term
            for name, term in wanted.items()
            if term is not None and name in known and not term.endswith("double>")  # it may be an xsd:float
        }
        for row in self.solve(core, SolutionRow(given)):
            for late in self._steps(query.late, row):
                if attributes(tuple(late.env.get(name) for name in query.outputs)) == tuple(values):
                    yield late

    def solve(self, node: algebra.Algebra, row: SolutionRow) -> Iterator[SolutionRow]:
        """The solutions of a node that are compatible with `row`, merged with it."""
        match node:
            case algebra.BasicGraphPattern(patterns, steps):
                constants = [
                    s
                    for s in steps
                    if isinstance(s, program.Bind) and isinstance(s.expression, program.Const)
                ]
                rest = [s for s in steps if s not in constants]
                for bound in self._steps(constants, row):
                    for matched in self.matches(patterns, bound):
                        yield from self._steps(rest, matched)
            case algebra.Join(left, right):
                for first in self.solve(left, row):
                    yield from self.solve(right, first)
            case algebra.LeftJoin(left, right, conditions):
                for first in self.solve(left, row):
                    found = False
                    for both in self.solve(right, first):
                        if all(self._holds(condition, both.env) for condition in conditions):
                            found = True
                            yield both
                    if not found:
                        yield replace(
                            first, absent=(*first.absent, f"OPTIONAL: no {self._shown(right, first.env)}")
                        )
            case algebra.MinusOf(left, right):
                for first in self.solve(left, row):
                    if not self._removed(right, first):
                        yield replace(
                            first, absent=(*first.absent, f"MINUS: no {self._shown(right, first.env)}")
                        )
            case algebra.UnionOf(branches):
                for branch in branches:
                    yield from self.solve(branch, row)
            case algebra.FilterOf(inner, condition, patterns):
                for first in self.solve(inner, row):
                    yield from self._exists(first, condition, patterns)
            case algebra.Extend(inner, variable, expression):
                for first in self.solve(inner, _without(row, {variable})):
                    yield from self._steps(
                        [program.Bind(expression, program.Var(variable))], _with(first, row, {variable})
                    )
            case algebra.Aggregation(inner, keys, totals):
                yield from self._grouped(inner, keys, totals, row)
            case _:
                assert_never(node)

    def matches(self, patterns: Sequence[algebra.Pattern], row: SolutionRow) -> Iterator[SolutionRow]:
        """The ways in which all patterns match."""
        paths = [pattern for pattern in patterns if not isinstance(pattern.predicate, (str, program.Var))]
        for found in self._matched([p for p in patterns if p not in paths], row):
            yield from self._walked(paths, found)

    def _walked(self, paths: Sequence[algebra.Pattern], row: SolutionRow) -> Iterator[SolutionRow]:
        """Paths that repeat, one after the other, each from an end that is known."""
        if not paths:
            yield row
            return
        known = [p for p in paths if _end(p.subject, row.env) or _end(p.object, row.env)]
        pattern = (known or list(paths))[0]
        rest = [p for p in paths if p is not pattern]
        path = cast("program.Path", pattern.predicate)
        start, end = _end(pattern.subject, row.env), _end(pattern.object, row.env)
        if start is None and end is not None:
            found = [(n, end, w) for n, w in walks(path, end, self._store, backwards=True).items()]
        else:
            starts = nodes(self._store) if start is None else [start]
            found = [(s, n, w) for s in starts for n, w in walks(path, s, self._store).items()]
        for subject, object_, triples in found:
            env = dict(row.env)
            if _fits(pattern.subject, subject, env) and _fits(pattern.object, object_, env):
                yield from self._walked(rest, replace(row, env=env, triples=(*row.triples, *triples)))

    def _matched(self, patterns: Sequence[algebra.Pattern], row: SolutionRow) -> Iterator[SolutionRow]:
        if not patterns:
            yield row
            return
        items = [triple_pattern(*_nodes(pattern)) for pattern in patterns]
        names = tuple(dict.fromkeys(n for item in items for n in item.variables))
        given = tuple(sorted(name for name in names if name in row.env))
        made = plan(items, [program.Var(name) for name in names], self._store, given=given)
        for values in walk(made, self._store, [row.env[name] for name in given]):
            env = {**row.env, **dict(zip(names, values, strict=True))}
            triples = tuple(_instance(pattern, env) for pattern in patterns)
            yield replace(row, env=env, triples=(*row.triples, *triples))

    def untrue(
        self, filters: Sequence[program.Expression], patterns: Sequence[algebra.Pattern]
    ) -> tuple[str, ...]:
        """The filters that are not true, with the values they saw, for the match for which most are true."""
        best: tuple[int, tuple[str, ...]] | None = None
        for row in islice(self.matches(patterns, SolutionRow({})), MOST):
            wrong = [one for one in filters if not self._holds(one, row.env)]
            if wrong and (best is None or len(wrong) < best[0]):
                best = len(wrong), tuple(self._condition(one, row.env) for one in wrong)
        return () if best is None else best[1]

    def _condition(self, condition: program.Expression, env: Env) -> str:
        values = self._values(expression_variables(condition), env)
        return f"FILTER({self._text.expression(condition)})" + (f"   {values}" if values else "")

    def _values(self, names: Iterable[str], env: Env) -> str:
        return " ; ".join(
            f"?{name} {self._text.term(env[name])}" for name in dict.fromkeys(names) if name in env
        )

    def bound(self, pattern: algebra.Pattern, env: Env) -> str:
        """The values of a pattern's variables that are known."""
        return self._values((node.name for node in _nodes(pattern) if isinstance(node, program.Var)), env)

    def not_then(self, pattern: algebra.Pattern, env: Env) -> tuple[NotThen, ...]:
        """What would match a pattern, but is held at other times: the first of it."""
        known = [env.get(n.name) if isinstance(n, program.Var) else n for n in _nodes(pattern)]
        found = (
            one
            for one in self._derivations.not_then()
            if all(node is None or node == term for node, term in zip(known, one.triple, strict=True))
        )
        return tuple(islice(found, 3))

    def known(self, pattern: algebra.Pattern, env: Env) -> tuple[Term | None, ...] | None:
        """The terms at the places of a pattern; None: of a path."""
        if not isinstance(pattern.predicate, (str, program.Var)):
            return None
        return tuple(env.get(n.name) if isinstance(n, program.Var) else n for n in _nodes(pattern))

    def nearest(self, pattern: algebra.Pattern, env: Env) -> list[Triple]:
        """Triples like a pattern that has no match: all but one of its known nodes agree."""
        known = self.known(pattern, env)
        if known is None:
            return []
        found: dict[Triple, None] = {}
        for place in (2, 0):
            if known[place] is None:
                continue
            free = [
                program.Var(f"free{i}") if term is None or i == place else term
                for i, term in enumerate(known)
            ]
            like = algebra.Pattern(free[0], free[1], free[2])
            for row in islice(self.matches([like], SolutionRow({})), 3):
                found[row.triples[0]] = None
        return list(found)[:3]

    def _steps(
        self, steps: Sequence[program.Filter | program.Bind], row: SolutionRow
    ) -> Iterator[SolutionRow]:
        """Filters that hold and binds that have a value, or the value that is there already."""
        for step in steps:
            if isinstance(step, program.Filter):
                if not self._holds(step.condition, row.env):
                    return
                continue
            value = self._value(step.expression, row.env)
            name = step.variable.name
            if value is None:
                if name in row.env:
                    return
            elif row.env.get(name, value) != value:
                return
            else:
                row = replace(row, env={**row.env, name: value})
        yield row

    def _exists(
        self,
        row: SolutionRow,
        condition: program.Expression,
        patterns: Sequence[tuple[algebra.BasicGraphPattern, ...]],
    ) -> Iterator[SolutionRow]:
        """A FILTER with EXISTS in it, the triples of those that exist brought along."""
        triples: list[Triple] = []
        absent: list[str] = []
        answers: list[bool] = []
        for branches in patterns:
            inner = next((r for branch in branches for r in self.solve(branch, SolutionRow(row.env))), None)
            answers.append(inner is not None)
            if inner is not None:
                triples += inner.triples
            else:
                absent.append(f"no {self._shown(algebra.UnionOf(branches), row.env)}")
        seen = iter(answers)

        def exists(_: program.Exists) -> Callable[[Env], bool]:
            answer = next(seen)
            return lambda env: answer

        holds = compile_condition(
            condition, _leaf, clock=self._store.moment.clock, now=self._now, exists=exists
        )
        if holds(row.env):
            yield replace(row, triples=(*row.triples, *triples), absent=(*row.absent, *absent))

    def _grouped(
        self,
        inner: algebra.Algebra,
        keys: Sequence[tuple[str, program.Expression]],
        totals: Sequence[tuple[str, program.Aggregate]],
        row: SolutionRow,
    ) -> Iterator[SolutionRow]:
        """Groups with the rows that were counted, the first ten of them with their triples."""
        made = {name for name, _ in keys} | {name for name, _ in totals}
        plain = {name for name, expression in keys if expression == program.Var(name)}
        start = SolutionRow(
            {name: term for name, term in row.env.items() if name in plain or name not in made}
        )
        groups: dict[tuple[Term | None, ...], list[SolutionRow]] = {}
        for found in self.solve(inner, start):
            key = tuple(self._value(expression, found.env) for _, expression in keys)
            groups.setdefault(key, []).append(found)
        if not keys and not groups:
            groups[()] = []
        for key, rows in sorted(groups.items(), key=lambda group: values_key(group[0])):
            env: dict[str, Term] = {n: t for (n, _), t in zip(keys, key, strict=True) if t is not None}
            for name, aggregate in totals:
                argument = aggregate.argument
                terms = [None if argument is None else self._value(argument, r.env) for r in rows]
                value = _total(aggregate, terms, len(rows))
                if value is not None:
                    env[name] = value
            if all(row.env.get(name, term) == term for name, term in env.items()):
                triples = tuple(t for r in rows[:10] for t in r.triples)
                absent = dict.fromkeys(text for r in rows[:10] for text in r.absent)
                all_triples = (*row.triples, *triples)
                yield SolutionRow({**row.env, **env}, all_triples, (*row.absent, *absent), len(rows))

    def _removed(self, right: algebra.Algebra, row: SolutionRow) -> bool:
        """Whether MINUS takes a solution away: one that is compatible and shares a variable."""
        shared = {name for name in algebra.possible(right) if name in row.env}
        return bool(shared) and any(
            any(found.env.get(name) is not None for name in shared)
            for found in self.solve(right, SolutionRow({name: row.env[name] for name in shared}))
        )

    def _shown(self, node: algebra.Algebra, env: Env) -> str:
        return " . ".join(self._text.pattern(pattern, env) for pattern in _first_patterns(node))

    def _holds(self, condition: program.Expression, env: Env) -> bool:
        clock = self._store.moment.clock
        return compile_condition(condition, _leaf, clock=clock, now=self._now)(env)

    def _value(self, expression: program.Expression, env: Env) -> Term | None:
        clock = self._store.moment.clock
        return compile_expression(expression, _leaf, clock=clock, now=self._now)(env)

    def _now(self, _: object) -> Term | None:
        return self._store.moment.now


def _total(aggregate: program.Aggregate, terms: Sequence[Term | None], rows: int) -> Term | None:
    if aggregate.argument is None:
        return integer(rows)
    return total(aggregate.function, aggregate.distinct, terms)


def _leaf(node: program.Var | program.Attribute | program.TimeOf) -> Callable[[Env], Term | None]:
    assert isinstance(node, program.Var), "queries have variables only"
    name = node.name
    return lambda env: env.get(name)


def _nodes(pattern: algebra.Pattern) -> tuple[program.Node, program.Node, program.Node]:
    assert isinstance(pattern.predicate, (str, program.Var)), "a path has been walked"
    return pattern.subject, pattern.predicate, pattern.object


def _end(node: program.Node, env: Env) -> Term | None:
    return env.get(node.name) if isinstance(node, program.Var) else node


def _fits(node: program.Node, term: Term, env: dict[str, Term]) -> bool:
    """Whether a node is this term; a variable that was free is bound to it."""
    return (env.setdefault(node.name, term) if isinstance(node, program.Var) else node) == term


def _instance(pattern: algebra.Pattern, env: Env) -> Triple:
    subject, predicate, object_ = (env[n.name] if isinstance(n, program.Var) else n for n in _nodes(pattern))
    return subject, predicate, object_


def _without(row: SolutionRow, names: set[str]) -> SolutionRow:
    return replace(row, env={name: term for name, term in row.env.items() if name not in names})


def _with(row: SolutionRow, other: SolutionRow, names: set[str]) -> SolutionRow:
    """The row with values of `other` back for some names."""
    return replace(row, env={**row.env, **{n: other.env[n] for n in names if n in other.env}})
