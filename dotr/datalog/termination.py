"""BIND in recursion: whether a computed value flows back into what it is computed from.

Place:   one of the checks of strata.py.
Method:  weak acyclicity (Fagin, Kolaitis, Miller, Popa 2005) over columns of relations. A variable copies
         from the columns of its body atoms to its head column; BIND makes new values from the columns it
         reads. A cycle with such an edge may not terminate and is refused; without one the closure is finite.
"""

from __future__ import annotations

from collections.abc import Sequence

from dotr.datalog.dependency import atom_relation, components
from dotr.errors import Diagnostics
from dotr.ir import Atom, BindAtom, Const, DatalogRule, Expression, Var
from dotr.joins.graph_relations import ALL, Relation, columns_of, is_anonymous, is_class, relation_name
from dotr.joins.variables import expression_variables
from dotr.rdf.terms import RDF_TYPE

_Place = tuple[str, str]  # (relation, column s|p|o)
_READ, _WRITE = "read ", "write "


def check_termination(rules: Sequence[DatalogRule], found: Diagnostics) -> None:
    """Report every rule whose BIND lies on a cycle. O(rules) without a BIND."""
    if not any(isinstance(item, BindAtom) for rule in rules for item in rule.body):
        return
    graph: dict[_Place, dict[_Place, None]] = {}
    made: list[tuple[_Place, _Place, int, BindAtom]] = []
    relations: dict[Relation, None] = {}
    for index, rule in enumerate(rules):
        _add_rule(rule, index, graph, made, relations)
    _add_unions(relations, graph)
    flow = {place: list(targets) for place, targets in graph.items()}
    component_of: dict[_Place, int] = {}
    for number, component in enumerate(components(flow)):
        component_of.update(dict.fromkeys(component, number))
    reported: set[int] = set()
    for source, target, index, bind in made:
        if component_of[source] == component_of[target] and index not in reported:
            reported.add(index)
            relation = relation_name(target[0].removeprefix(_WRITE))
            found.error(
                "D3004",
                f"BIND in a recursive rule: `?{bind.variable.name}` feeds the values it is computed from",
                bind.span or rules[index].span,
                notes=(f"new values for {relation} make further ones: this may not terminate",),
            )


def _add_rule(
    rule: DatalogRule,
    index: int,
    graph: dict[_Place, dict[_Place, None]],
    made: list[tuple[_Place, _Place, int, BindAtom]],
    relations: dict[Relation, None],
) -> None:
    places: dict[str, list[_Place]] = {}
    for item in rule.body:
        if isinstance(item, Atom):
            relations[atom_relation(item)] = None
            for name, place in _places(item, _READ):
                places.setdefault(name, []).append(place)
    binds = {item.variable.name: item for item in rule.body if isinstance(item, BindAtom)}
    for head in rule.heads:
        relations[atom_relation(head)] = None
        for name, target in _places(head, _WRITE):
            for source in places.get(name, ()):
                graph.setdefault(source, {})[target] = None
                graph.setdefault(target, {})
            if name in binds:
                bind = binds[name]
                for used, copied in _sources(bind.expression, binds):
                    for source in places.get(used, ()):
                        graph.setdefault(source, {})[target] = None
                        graph.setdefault(target, {})
                        if not copied:
                            made.append((source, target, index, bind))


def _sources(expression: Expression, binds: dict[str, BindAtom]) -> list[tuple[str, bool]]:
    """Variables a value is computed from, through other BINDs; True where it is only copied."""
    found: list[tuple[str, bool]] = []
    todo: list[tuple[Expression, bool]] = [(expression, True)]
    seen: set[str] = set()
    while todo:
        part, copied = todo.pop()
        if isinstance(part, Const):
            continue
        copied = copied and isinstance(part, Var)
        for name in expression_variables(part):
            found.append((name, copied))
            if name in binds and name not in seen:
                seen.add(name)
                todo.append((binds[name].expression, copied))
    return found


def _places(atom: Atom, side: str) -> list[tuple[str, _Place]]:
    relation = atom_relation(atom)
    columns = columns_of(atom.subject, atom.predicate, atom.object)
    names = ("s",) if len(columns) == 1 else ("s", "o") if len(columns) == 2 else ("s", "p", "o")
    union = side if relation in (ALL, RDF_TYPE) else ""
    return [
        (node.name, (union + relation, column))
        for node, column in zip(columns, names, strict=True)
        if isinstance(node, Var)
    ]


def _add_unions(relations: dict[Relation, None], graph: dict[_Place, dict[_Place, None]]) -> None:
    def copy(source: _Place, target: _Place) -> None:
        graph.setdefault(source, {})[target] = None
        graph.setdefault(target, {})

    for column in "so":
        copy((_READ + RDF_TYPE, column), (_READ + ALL, column))
        copy((_WRITE + RDF_TYPE, column), (_READ + RDF_TYPE, column))
        copy((_WRITE + ALL, column), (_READ + ALL, column))
        copy((_WRITE + ALL, column), (_READ + RDF_TYPE, column))
    copy((_WRITE + ALL, "p"), (_READ + ALL, "p"))
    for relation in relations:
        if relation in (ALL, RDF_TYPE) or is_anonymous(relation):
            continue
        if is_class(relation):
            copy((relation, "s"), (_READ + RDF_TYPE, "s"))
            copy((_WRITE + RDF_TYPE, "s"), (relation, "s"))
            copy((_WRITE + ALL, "s"), (relation, "s"))
        else:
            for column in "so":
                copy((relation, column), (_READ + ALL, column))
                copy((_WRITE + ALL, column), (relation, column))
