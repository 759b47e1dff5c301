"""Strongly connected components of a graph given by a successor function, found on demand.

Place:   read by path_relations.py for pairs of many starts, and by datalog/dependency.py; knows no triples.
Method:  depth-first search with low links (Tarjan 1972), without recursion. What a start reaches is the union
         of the components below it; in a component everything reaches everything, so that a clique is one
         step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

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
