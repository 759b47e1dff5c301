"""Relations of property paths: the pairs of nodes that a path joins, computed and never kept.

Place:   computed from the store; store.py serves them like any other relation, so that plans, deltas and
         EXISTS need not know; enrich/analysis.py also uses the strongly connected components.
Method:  set semantics of `*`, `+`, `?` (SPARQL 1.1, sec. 18.4, ALP): pairs are distinct. From one end:
         breadth first over the product of graph and automaton (Mendelzon, Wood 1995), semi-naive, since each
         (node, state) is expanded once. For all pairs: through the strongly connected components of the
         product (Purdom 1970). At an instant: the pairs gained by new edges and lost with withdrawn ones;
         only pairs whose ends the changed edges reach are compared, from the smaller side.
         Automaton: position automaton (Glushkov 1961): a state for every occurrence of an edge in the path,
         entered by that edge, without empty moves; occurrences with equal successors are one state. `p*`,
         `p+` and `p?`, however nested, are loops of the automaton, so that `(((p*)*)*)*` is walked like `p*`.
         Components: depth-first search with low links (Tarjan 1972), without recursion, over a successor
         function, on demand. A start reaches the union of the components below it; in a component everything
         reaches everything, so that a clique is one step.
Why not: maintaining the closure: it has the size of the graph squared, and most queries fix one end.
         Evaluating step by step like the standard's ALP: a nested repetition would be walked once for each
         node of the outer one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar, assert_never

from msgspec import Struct

from dotr.budget import KEPT, Meter
from dotr.joins.plan import ALL, Relation, View, relation_name
from dotr.program import Alternative, Inverse, NegatedSet, Path, Repeat
from dotr.program import Sequence as PathSequence
from dotr.rdf.index import Changes, Column, Overlay, many
from dotr.rdf.terms import Term


class Transition(Struct, frozen=True):
    """One step along a predicate, or against it. `predicate` None: along any except the `excluded`."""

    predicate: Term | None
    forward: bool = True
    excluded: frozenset[Term] = frozenset()

    def turned(self) -> Transition:
        return Transition(self.predicate, not self.forward, self.excluded)


Move: TypeAlias = tuple[Transition, int]
"""An edge and the state that it leads to."""


class Machine(Struct, frozen=True):
    """The moves of each state, the start, and the ends; it does not accept the path of length zero."""

    moves: tuple[tuple[Move, ...], ...]
    start: int
    accepting: frozenset[int]


class Automaton(Struct, frozen=True):
    """A path read from its subject (`forward`) and from its object (`backward`).

    States have the same numbers in both; only the start of `backward` is an additional state. `nullable`: the
    path of length zero, which neither machine accepts, matches.
    """

    forward: Machine
    backward: Machine
    nullable: bool

    @property
    def edges(self) -> frozenset[Transition]:
        """Every edge, read from the subject."""
        return frozenset(edge for moves in self.forward.moves for edge, _ in moves)


class _SubAutomaton(Struct, frozen=True):
    """Of a path: the positions it may begin and end at, and whether it may be empty."""

    first: tuple[int, ...]
    last: tuple[int, ...]
    nullable: bool


_EMPTY = _SubAutomaton((), (), True)


class _Places:
    """Owns the positions of edges and their successors: tuples of positions, shared where equal."""

    def __init__(self) -> None:
        self.edges: list[Transition] = []
        self.follow: list[dict[int, tuple[int, ...]]] = []

    def part(self, path: Path, forward: bool) -> _SubAutomaton:
        match path:
            case str():
                return self._edge(Transition(path, forward))
            case Inverse(inner):
                return self.part(inner, not forward)
            case PathSequence(paths):
                found = _EMPTY
                for step in paths if forward else reversed(paths):
                    found = self._behind(found, self.part(step, forward))
                return found
            case Alternative(paths):
                return _either([self.part(each, forward) for each in paths])
            case Repeat(inner, minimum, unbounded):
                found = self.part(inner, forward)
                if unbounded:
                    self._join(found.last, found.first)
                return _SubAutomaton(found.first, found.last, found.nullable or minimum == 0)
            case NegatedSet(ahead, back):
                sets = [(ahead, forward)] if ahead or not back else []
                sets += [(back, not forward)] if back else []
                return _either([self._edge(Transition(None, along, frozenset(s))) for s, along in sets])
            case _:
                assert_never(path)

    def _edge(self, edge: Transition) -> _SubAutomaton:
        self.edges.append(edge)
        self.follow.append({})
        place = (len(self.edges) - 1,)
        return _SubAutomaton(place, place, False)

    def _behind(self, a: _SubAutomaton, b: _SubAutomaton) -> _SubAutomaton:
        self._join(a.last, b.first)
        return _SubAutomaton(
            a.first + b.first if a.nullable else a.first,
            a.last + b.last if b.nullable else b.last,
            a.nullable and b.nullable,
        )

    def _join(self, places: Iterable[int], following: tuple[int, ...]) -> None:
        for place in places:
            self.follow[place][id(following)] = following


def _either(parts: list[_SubAutomaton]) -> _SubAutomaton:
    return _SubAutomaton(
        tuple(place for part in parts for place in part.first),
        tuple(place for part in parts for place in part.last),
        any(part.nullable for part in parts),
    )


def automaton(path: Path) -> Automaton:
    """The automaton of a path. Cost: about its length; one state per set of successors."""
    places = _Places()
    whole = places.part(path, True)
    ends = frozenset(whole.last)
    states: dict[tuple[frozenset[int], bool], int] = {}
    ways: list[Iterable[tuple[int, ...]]] = [(whole.first,)]
    state_of: list[int] = []
    for place, follow in enumerate(places.follow):
        key = frozenset(follow), place in ends
        if key not in states:
            states[key] = len(ways)
            ways.append(follow.values())
        state_of.append(states[key])
    moves = tuple(
        tuple(dict.fromkeys((places.edges[p], state_of[p]) for following in way for p in following))
        for way in ways
    )
    accepting = frozenset(state for (_, end), state in states.items() if end)
    return Automaton(Machine(moves, 0, accepting), _backward(moves, accepting), whole.nullable)


def _backward(moves: tuple[tuple[Move, ...], ...], accepting: frozenset[int]) -> Machine:
    """The same moves reversed, from accepting states to the start."""
    back: list[list[Move]] = [[] for _ in moves]
    for state, ways in enumerate(moves):
        for edge, target in ways:
            back[target].append((edge.turned(), state))
    start = dict.fromkeys(move for state in sorted(accepting) for move in back[state])
    return Machine((*map(tuple, back), tuple(start)), len(moves), frozenset((0,)))


Vertex = TypeVar("Vertex")


class StrongComponents(Generic[Vertex]):
    """Owns the components found so far: their vertices, and the components that edges lead to."""

    def __init__(self, successors: Callable[[Vertex], Sequence[Vertex]]) -> None:
        self._successors = successors
        self._of: dict[Vertex, int] = {}
        self.members: list[list[Vertex]] = []
        self.next: list[tuple[int, ...]] = []

    def of(self, vertex: Vertex) -> int:
        """The number of a vertex's component. O(what it reaches that no earlier call did)."""
        if vertex not in self._of:
            self._explore(vertex)
        return self._of[vertex]

    def below(self, starts: Sequence[int]) -> Iterator[int]:
        """The distinct components reached from some, these included."""
        found = dict.fromkeys(starts)
        queue = list(found)
        for component in queue:
            yield component
            for other in self.next[component]:
                if other not in found:
                    found[other] = None
                    queue.append(other)

    def _explore(self, root: Vertex) -> None:
        done = self._of
        number = {root: 0}
        low = {root: 0}
        path = [root]
        children = {root: self._successors(root)}
        work = [(root, iter(children[root]))]
        while work:
            vertex, rest = work[-1]
            for child in rest:
                if child in done:
                    continue
                if child in number:
                    low[vertex] = min(low[vertex], number[child])
                    continue
                number[child] = low[child] = len(number)
                path.append(child)
                children[child] = self._successors(child)
                work.append((child, iter(children[child])))
                break
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == number[vertex]:
                    self._close(vertex, path, children)

    def _close(self, root: Vertex, path: list[Vertex], children: dict[Vertex, Sequence[Vertex]]) -> None:
        """Close the component of everything on the path from `root` on."""
        own = len(self.members)
        members = [path.pop()]
        while members[-1] != root:
            members.append(path.pop())
        for member in members:
            self._of[member] = own
        leads = dict.fromkeys(self._of[child] for member in members for child in children.pop(member))
        leads.pop(own, None)
        self.members.append(members)
        self.next.append(tuple(leads))


Pair: TypeAlias = tuple[Term, Term]
State: TypeAlias = tuple[Term, int]
"""A node and a state of the machine."""

Neighbours: TypeAlias = Callable[[Term], Collection[Term]]
Ends: TypeAlias = dict[Term, None]
Table: TypeAlias = list[list[tuple[Neighbours, list[int]]]]
"""By state: how to find the neighbours of a node, and the next states."""


class TripleReader(Protocol):
    """What a path needs of the store."""

    overlay: Overlay
    static: frozenset[Relation]

    def changes(self, relation: Relation) -> Changes: ...
    def column(self, predicate: Term, key: int) -> Column | None: ...
    def rows(self, relation: Relation) -> int: ...
    def values(self, relation: Relation, column: int) -> int: ...
    def find(
        self, relation: Relation, values: Sequence[Term | None], view: View
    ) -> list[tuple[Term, ...]]: ...


class PathRelation:
    """Owns one relation of two columns. `ends`: the query's constants for them, else None.

    A constant end is joined with itself by a path of length zero, whether or not it is in the graph; any
    other node only if it is in a triple. `changes` holds what the instant adds and removes, after `run`;
    `turn` counts the instants for which it ran. The pairs depend on `sources` alone.
    """

    def __init__(
        self,
        relation: Relation,
        path: Automaton,
        ends: tuple[Term | None, Term | None],
        store: TripleReader,
        meter: Meter,
    ) -> None:
        self.relation = relation
        self.path = path
        self.ends = ends
        self._meter = meter
        self._what = f"paths {relation_name(relation)}"
        self._store = store
        edges = sorted(path.edges, key=lambda e: (e.predicate or "", e.forward, sorted(e.excluded)))
        self._predicates = tuple(dict.fromkeys(e.predicate or ALL for e in edges))
        self._anywhere = path.nullable and ends == (None, None)
        """Whether every node of the graph is joined with itself."""
        self.sources = tuple(dict.fromkeys((*self._predicates, *((ALL,) if self._anywhere else ()))))
        self.changes = store.changes(relation)
        self.turn = 0
        for source in self.sources:
            if source not in store.static:
                for column in (0, 2 if source == ALL else 1):
                    store.changes(source).index((column,))
        self._tables: dict[tuple[bool, View], Table] = {}

    def charge(self, rows: int) -> None:
        """Charge for the rows that were read. Raises Exhausted."""
        self._meter.charge(rows, self._what)

    # -- for the planner

    def rows(self) -> int:
        """Roughly the number of pairs of the background; 0 if none."""
        found = 4 * sum(map(self._store.rows, self._predicates))
        if self._anywhere:
            found += self._store.rows(ALL)
        elif self.path.nullable:
            found += 1
        return found

    def values(self, column: int) -> int:
        """Roughly the number of distinct values of a column."""
        if self.ends[column] is not None:
            return 1
        return sum(self._store.values(p, 2 * column if p == ALL else column) for p in self._predicates)

    # -- rows

    def find(self, values: Sequence[Term | None], view: View) -> list[Pair]:
        """The pairs with these values (None: any), in a fixed order."""
        if view is View.ADDED or view is View.REMOVED:
            self.run()
            rows = self.changes.added if view is View.ADDED else self.changes.removed
            if None not in values:
                return [row] if (row := tuple(values)) in rows else []  # type: ignore[list-item]  # two terms
            return [row for row in rows if _agrees(row, values)]
        if view is View.KEPT:
            found = self.find(values, View.OLD)
            if found and self._may_lose():
                left = set(self.find(values, View.NEW))
                found = [pair for pair in found if pair in left]
            return found
        subject, object_ = values
        if subject is not None and object_ is not None:
            return [(subject, object_)] if self._joins(subject, object_, view) else []
        if subject is not None:
            return [(subject, end) for end in self._from(subject, view, True)]
        if object_ is not None:
            return [(end, object_) for end in self._from(object_, view, False)]
        return list(self._pairs(view))

    def _joins(self, subject: Term, object_: Term, view: View) -> bool:
        if subject == object_ and self.path.nullable:
            return self._itself(subject, view)
        return object_ in self._walk(True, view, [(subject, self.path.forward.start)], object_)

    def _from(self, node: Term, view: View, forward: bool) -> Ends:
        """The other ends of pairs with this end."""
        found = self._walk(forward, view, [(node, self._machine(forward).start)])
        if self.path.nullable and self._itself(node, view):
            found[node] = None
        return found

    def _pairs(self, view: View) -> Iterator[Pair]:
        nullable = self.path.nullable
        if nullable:
            for node in self._nodes(view):
                yield node, node
        closure = _Closure(self, True, view)
        for start in self._starts(view):
            ends = closure.ends(start)
            self.charge(KEPT * len(ends))
            for end in ends:
                if start != end or not nullable:
                    yield start, end

    # -- nodes and moves of the graph

    def _itself(self, node: Term, view: View) -> bool:
        """Whether a path of length zero joins the node with itself, if the path is nullable."""
        if not self._anywhere:
            return node in self.ends
        return self._is_node(node, view)

    def _is_node(self, node: Term, view: View) -> bool:
        find = self._store.find
        return bool(find(ALL, (node, None, None), view) or find(ALL, (None, None, node), view))

    def _nodes(self, view: View) -> Iterable[Term]:
        """The nodes that a path of length zero joins with themselves, one end being open."""
        if not self._anywhere:
            return [end for end in self.ends if end is not None]
        rows = self._store.find(ALL, (None, None, None), view)
        self.charge(len(rows))
        return dict.fromkeys(node for s, _, o in rows for node in (s, o))

    def _starts(self, view: View) -> Iterable[Term]:
        """Nodes that the first edge of a path may leave."""
        starts: Ends = {}
        for edge, _ in self.path.forward.moves[0]:
            relation = edge.predicate or ALL
            rows = self._store.find(relation, (None,) * (3 if relation == ALL else 2), view)
            self.charge(len(rows))
            place = 0 if edge.forward else -1
            starts.update(
                (row[place], None) for row in rows if relation != ALL or row[1] not in edge.excluded
            )
        return starts

    def _machine(self, forward: bool) -> Machine:
        return self.path.forward if forward else self.path.backward

    def table(self, forward: bool, view: View) -> Table:
        """The machine's moves over a view, OLD or NEW."""
        found = self._tables.get((forward, view))
        if found is None:
            found = self._tables[forward, view] = []
            for way in self._machine(forward).moves:
                targets: dict[Transition, list[int]] = {}
                for edge, state in way:
                    targets.setdefault(edge, []).append(state)
                found.append([(self._neighbours(edge, view), states) for edge, states in targets.items()])
        return found

    def _neighbours(self, edge: Transition, view: View) -> Neighbours:
        side = 0 if edge.forward else 1
        if edge.predicate is None:
            return self._others(edge, side, view)
        found = self._store.column(edge.predicate, side)
        column: Column = {} if found is None else found
        old: Neighbours = lambda node: many(column.get(node))  # noqa: E731  # the shortest of three
        if view is View.OLD or edge.predicate in self._store.static:
            return old
        changes = self._store.changes(edge.predicate)
        added, removed = changes.index((side,)), changes.removed

        def new(node: Term) -> Collection[Term]:
            found = many(column.get(node))
            if removed and found:
                found = tuple([n for n in found if ((n, node) if side else (node, n)) not in removed])
            more = added.get(node)
            return found if more is None else (*found, *more)

        return new

    def _others(self, edge: Transition, side: int, view: View) -> Neighbours:
        find, excluded = self._store.find, edge.excluded

        def neighbours(node: Term) -> Collection[Term]:
            asked = (None, None, node) if side else (node, None, None)
            return [row[0 if side else 2] for row in find(ALL, asked, view) if row[1] not in excluded]

        return neighbours

    def _walk(self, forward: bool, view: View, starts: Iterable[State], goal: Term | None = None) -> Ends:
        """The nodes at which the machine accepts, at least one step from the starts; stops at `goal`."""
        accepting = self._machine(forward).accepting
        seen = self._reached(forward, view, starts, goal)
        return {node: None for state in sorted(accepting) for node in seen[state]}

    def _reached(
        self, forward: bool, view: View, starts: Iterable[State], goal: Term | None = None
    ) -> list[Ends]:
        """By state, the nodes at least one step from the starts."""
        machine, table, left = self._machine(forward), self.table(forward, view), self._meter.left
        seen: list[Ends] = [{} for _ in table]
        queue = list(starts)
        for node, state in queue:
            left[0] -= KEPT
            for neighbours, targets in table[state]:
                found = neighbours(node)
                left[0] -= len(found)
                if left[0] < 0:
                    self.charge(0)
                for target in targets:
                    there = seen[target]
                    for other in found:
                        if other not in there:
                            there[other] = None
                            queue.append((other, target))
                            if other == goal and target in machine.accepting:
                                return seen
        return seen

    # -- changes

    def run(self) -> None:
        """Compute what the instant adds to the pairs and removes from them, once."""
        changes = self.changes
        if not changes.idle:
            return
        added = dict.fromkeys(self._gained(View.NEW, View.OLD, lambda of: of.added))
        removed = dict.fromkeys(self._gained(View.OLD, View.NEW, lambda of: of.removed))
        self.turn += 1
        changes.idle = False
        self._store.overlay.touched.append(changes)
        changes.added.update(added)
        changes.removed.update(removed)

    def _may_lose(self) -> bool:
        return any(self._store.changes(source).removed for source in self.sources)

    def _gained(
        self, view: View, other: View, differing: Callable[[Changes], dict[tuple[Term, ...], None]]
    ) -> Iterator[Pair]:
        """The pairs of one view that the other lacks. `differing`: the rows it has in addition."""
        if self._anywhere:
            rows = differing(self._store.changes(ALL))
            for node in dict.fromkeys(node for s, _, o in rows for node in (s, o)):
                if not self._is_node(node, other):
                    yield node, node
        tails, heads = self._differing(differing)
        if not tails:
            return
        ours = self._touched_ends(False, view, tails)
        theirs = self._touched_ends(True, view, heads)
        forward = len(ours) < len(theirs)
        nodes, allowed = (ours, theirs) if forward else (theirs, ours)
        now, before = _Closure(self, forward, view), _Closure(self, forward, other)
        for node in nodes:
            known = before.ends(node)
            gained = [end for end in now.ends(node) if end in allowed and end not in known]
            self.charge(KEPT * len(gained))
            for end in gained:
                if end != node or not self.path.nullable:
                    yield (node, end) if forward else (end, node)

    def _differing(
        self, differing: Callable[[Changes], dict[tuple[Term, ...], None]]
    ) -> tuple[list[State], list[State]]:
        """The differing edges as moves: their sources and targets."""
        tails: list[State] = []
        heads: list[State] = []
        for state, way in enumerate(self.path.forward.moves):
            for edge, target in way:
                rows: Iterable[tuple[Term, ...]] = differing(self._store.changes(edge.predicate or ALL))
                for row in rows:
                    if edge.predicate is None and row[1] in edge.excluded:
                        continue
                    start, end = (row[0], row[-1]) if edge.forward else (row[-1], row[0])
                    tails.append((start, state))
                    heads.append((end, target))
        self.charge(len(tails))
        return list(dict.fromkeys(tails)), list(dict.fromkeys(heads))

    def _touched_ends(self, forward: bool, view: View, states: Sequence[State]) -> Ends:
        """The ends of paths that continue (backwards: arrive) from one of the states; constants if given."""
        accepting = self._machine(forward).accepting
        found = {node: None for node, state in states if state in accepting}
        found |= self._walk(forward, view, states)
        end = self.ends[1 if forward else 0]
        return found if end is None else {end: None} if end in found else {}


class _Closure:
    """Owns the components of a view's product graph, computed on demand."""

    def __init__(self, relation: PathRelation, forward: bool, view: View) -> None:
        machine = relation.path.forward if forward else relation.path.backward
        self._table = relation.table(forward, view)
        self._start, self._accepting = machine.start, machine.accepting
        self._charge = relation.charge
        self._components: StrongComponents[State] = StrongComponents(self._successors)
        self._ends: list[list[Term]] = []  # of each component
        self._last: tuple[tuple[int, ...], Ends] = ((), {})

    def ends(self, node: Term) -> Ends:
        """The other ends of proper paths from a node; fast for consecutive nodes with equal first steps."""
        components = self._components
        ways = components.next[components.of((node, self._start))]
        if ways != self._last[0]:
            self._last = ways, self._collected(ways)
        return self._last[1]

    def _collected(self, ways: Sequence[int]) -> Ends:
        found: Ends = {}
        for component in self._components.below(ways):
            ends = self._ends_of(component)
            self._charge(len(ends) + KEPT)
            found.update(dict.fromkeys(ends))
        return found

    def _ends_of(self, component: int) -> list[Term]:
        for members in self._components.members[len(self._ends) :]:
            self._ends.append([node for node, state in members if state in self._accepting])
        return self._ends[component]

    def _successors(self, vertex: State) -> Sequence[State]:
        node, state = vertex
        found = [
            (other, target)
            for neighbours, targets in self._table[state]
            for other in neighbours(node)
            for target in targets
        ]
        self._charge(len(found) + KEPT)
        return found


def _agrees(row: Pair, values: Sequence[Term | None]) -> bool:
    return all(value is None or value == term for term, value in zip(row, values, strict=True))
