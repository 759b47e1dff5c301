"""A store for rdflib that reasons: `Graph(store="dotr")`.

Place:   found by rdflib through the entry point `rdf.plugins.store` of the installed package; if dotr is not
         installed, importing this module registers it. A KnowledgeBase does the work.
Method:  additions and removals are buffered, and become one transaction when the program next reads the
         graph, or commits: a document that rdflib parses triple by triple costs one. Queries go to the
         knowledge base; rdflib evaluates what its SPARQL lacks (CONSTRUCT, DESCRIBE, updates) over the same
         triples. Literals are returned as they were written, although the index has their canonical form; two
         spellings of one value are one triple. What rdflib would fetch for a query or an update (SERVICE,
         FROM, USING, LOAD) is refused before rdflib sees it: text opens no connection and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

from pyparsing import ParseResults
from rdflib import plugin
from rdflib.plugins.sparql.parser import parseQuery, parseUpdate
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query as ParsedQuery
from rdflib.plugins.sparql.sparql import Update as ParsedUpdate
from rdflib.query import Result
from rdflib.store import NO_STORE, VALID_STORE
from rdflib.store import Store as RdflibStore
from rdflib.term import Literal, Node, URIRef, Variable

from dotr.errors import DataError, EngineError, ProgramError, UsageError
from dotr.io.python_values import own_term, own_triple
from dotr.knowledge_base import KnowledgeBase
from dotr.rdf.rdflib_terms import rdflib_term
from dotr.rdf.terms import Term, Triple

__all__ = ["Store"]

_FETCHED: Mapping[str, str] = {
    "ServiceGraphPattern": "SERVICE",
    "DatasetClause": "FROM",
    "UsingClause": "USING",
    "Load": "LOAD",
}
"""What rdflib fetches, as its parser calls it."""

_OPTIONS: Mapping[str, Any] = {"entailment": "owl2rl", "contradictions": "keep"}


class Store(RdflibStore):
    """Owns a knowledge base and its buffered changes.

    `configuration`, here or in `Graph.open`: options of KnowledgeBase as a dict, or the path of a saved one.
    By default OWL 2 RL is entailed, and contradictions are kept (`store.knowledge_base.contradictions()`). A
    derived triple cannot be removed: it disappears with its premises. `commit` makes a transaction of the
    buffered changes, `rollback` drops them; both are called through Graph. If a transaction raises
    (ContradictionError, if contradictions are refused), the graph is unchanged.
    """

    context_aware = False
    formula_aware = False
    transaction_aware = True
    graph_aware = False

    def __init__(self, configuration: Any = None, identifier: Any = None) -> None:
        self._path: str | None = None
        self._waiting: dict[Triple, bool] = {}
        self._spelled: dict[Term, Literal] = {}
        self._nodes: dict[Term, Node] = {}
        self._prefixes: dict[str, URIRef] = {}
        self._namespaces: dict[URIRef, str] = {}
        self._kb = _fresh({})
        super().__init__(configuration, identifier)

    @classmethod
    def over(cls, knowledge_base: KnowledgeBase) -> Store:
        """A store over an existing knowledge base; both show the same triples."""
        store = cls()
        store._kb = knowledge_base
        return store

    @property
    def knowledge_base(self) -> KnowledgeBase:
        """Everything that rdflib's interface lacks: rules, proofs, watches, time."""
        self.commit()
        return self._kb

    def open(self, configuration: Any, create: bool = False) -> int | None:
        """Open with options (a dict) or a saved knowledge base (a path); with `create` it may be new."""
        if isinstance(configuration, Mapping):
            self._kb = _fresh(configuration)
            return VALID_STORE
        try:
            self._kb = KnowledgeBase.open(str(configuration), terms="canonical")
        except EngineError:
            raise
        except Exception:
            if not create:
                return NO_STORE
            self._kb = _fresh({})
        self._path = str(configuration)
        return VALID_STORE

    def close(self, commit_pending_transaction: bool = False) -> None:
        """Close; if it was opened at a path, save there what was committed."""
        if commit_pending_transaction:
            self.commit()
        else:
            self.rollback()
        if self._path is not None:
            self._kb.save(self._path)

    def destroy(self, configuration: str) -> None:
        """Drop everything."""
        self._waiting.clear()
        self._kb = _fresh({})

    # -- changes

    def commit(self) -> None:
        """Make one transaction of the buffered changes."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        self._kb.update(
            insert=[triple for triple, added in waiting.items() if added],
            delete=[triple for triple, added in waiting.items() if not added],
        )

    def rollback(self) -> None:
        """Drop the buffered changes."""
        self._waiting.clear()

    def add(self, triple: tuple[Node, Node, Node], context: Any = None, quoted: bool = False) -> None:
        """State a triple, when the graph is next read."""
        own = self._own(triple)
        super().add(triple, context, quoted)  # notifies listeners
        self._waiting[own] = True

    def addN(self, quads: Iterable[tuple[Node, Node, Node, Any]]) -> None:  # noqa: N802  # rdflib's name
        """State several triples."""
        for subject, predicate, object_, context in quads:
            self.add((subject, predicate, object_), context)

    def remove(self, triple: tuple[Node | None, Node | None, Node | None], context: Any = None) -> None:
        """Delete every matching statement."""
        super().remove(triple, context)
        if None not in triple:
            self._waiting[self._own(triple)] = False
            return
        self.commit()
        for found in self._kb.triples(*triple, which="stated"):
            self._waiting[found] = False

    def _own(self, triple: Any) -> Triple:
        own = own_triple(tuple(triple))
        for node, term in zip(triple, own, strict=True):
            if isinstance(node, Literal) and term not in self._nodes and rdflib_term(term) != node:
                self._spelled[term] = self._nodes[term] = node
        return own

    # -- reading

    def triples(
        self, triple_pattern: tuple[Node | None, Node | None, Node | None], context: Any = None
    ) -> Iterator[tuple[tuple[Node, Node, Node], Iterator[Any]]]:
        """The matching triples that hold, stated or derived; of one state."""
        self.commit()
        if any(isinstance(node, Literal) for node in triple_pattern[:2]):
            return
        try:
            found = self._kb.triples(*triple_pattern)
        except (UsageError, DataError):
            return  # no triple contains a term outside RDF
        node = self._node
        for subject, predicate, object_ in found:
            yield (node(subject), node(predicate), node(object_)), iter((context,))

    def __len__(self, context: Any = None) -> int:
        """The number of triples that hold, stated or derived."""
        self.commit()
        return len(self._kb)

    def query(
        self,
        query: ParsedQuery | str,
        initNs: Mapping[str, Any],  # noqa: N803  # rdflib's names
        initBindings: Mapping[str, Node],  # noqa: N803
        queryGraph: Any,  # noqa: N803
        **kwargs: Any,
    ) -> Result:
        """A SELECT or ASK, by the knowledge base. Raises NotImplementedError for what is left to rdflib, and
        ProgramError D1203 for what would fetch something.
        """
        if not isinstance(query, str):
            _refuse_fetching(query.algebra)
            raise NotImplementedError
        self.commit()
        known = {name: str(iri) for name, iri in (*self._prefixes.items(), *initNs.items())}
        values = {str(name): own_term(node) for name, node in initBindings.items()}
        try:
            prepared = self._kb.prepare(query, known)
            if prepared.is_ask:
                result = Result("ASK")
                result.askAnswer = prepared.ask(**values)
                return result
            answers = prepared(**values)
        except (ProgramError, UsageError):
            _refuse_fetching(_parsed(parseQuery, query))
            raise NotImplementedError from None
        result = Result("SELECT")
        result.vars = [Variable(name) for name in answers.variables]
        result.bindings = [
            {
                variable: self._node(term)
                for variable, term in zip(result.vars, row, strict=True)
                if term is not None
            }
            for row in answers.rows
        ]
        return result

    def update(
        self,
        update: ParsedUpdate | str,
        initNs: Mapping[str, Any],  # noqa: N803  # rdflib's names
        initBindings: Mapping[str, Node],  # noqa: N803
        queryGraph: Any,  # noqa: N803
        **kwargs: Any,
    ) -> None:
        """Left to rdflib (NotImplementedError), unless it would fetch something: ProgramError D1203."""
        _refuse_fetching(_parsed(parseUpdate, update) if isinstance(update, str) else update.algebra)
        raise NotImplementedError

    def _node(self, term: Term) -> Any:
        """A term as an rdflib term, as first written."""
        found = self._nodes.get(term)
        if found is None:
            found = rdflib_term(term)
            if len(self._nodes) > 1 << 16:
                self._nodes = dict(self._spelled)
            self._nodes[term] = found
        return found

    def contexts(self, triple: Any = None) -> Generator[Any, None, None]:
        """Contexts: there is only one graph."""
        yield from ()

    # -- prefixes

    def bind(self, prefix: str, namespace: URIRef, override: bool = True) -> None:
        """Bind a prefix to a namespace."""
        if not override and (prefix in self._prefixes or namespace in self._namespaces):
            return
        old = self._prefixes.pop(prefix, None)
        if old is not None:
            self._namespaces.pop(old, None)
        other = self._namespaces.pop(namespace, None)
        if other is not None:
            self._prefixes.pop(other, None)
        self._prefixes[prefix] = namespace
        self._namespaces[namespace] = prefix

    def namespace(self, prefix: str) -> URIRef | None:
        """The namespace of a prefix; None if it is not bound."""
        return self._prefixes.get(prefix)

    def prefix(self, namespace: URIRef) -> str | None:
        """The prefix that is bound to a namespace, or None."""
        return self._namespaces.get(namespace)

    def namespaces(self) -> Iterator[tuple[str, URIRef]]:
        """Pairs of prefix and namespace."""
        return iter(list(self._prefixes.items()))


def _fresh(options: Mapping[str, Any]) -> KnowledgeBase:
    return KnowledgeBase(**{**_OPTIONS, **options, "terms": "canonical", "blank_nodes": "label"})


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """What rdflib's parser makes of a string; nothing where it refuses it, which rdflib reports then."""
    try:
        return parse(text)
    except Exception:  # of pyparsing, and of rdflib's own
        return ()


def _refuse_fetching(parsed: Any) -> None:
    """Raise ProgramError D1203 for a query or an update that would fetch something."""
    waiting = [parsed]
    while waiting:
        one = waiting.pop()
        if isinstance(one, CompValue):
            word = _FETCHED.get(one.name)
            if word is None and dict.get(one, "datasetClause"):
                word = "FROM"
            if word is None and dict.get(one, "using"):
                word = "USING"
            if word is not None:
                raise ProgramError.of(
                    "D1203",
                    f"a query or an update of this store may not use {word}",
                    notes=("it would open a connection or a file that the program did not name",),
                    hint="fetch the data beforehand: graph.parse(…)",
                )
            waiting.extend(dict.values(one))  # its own `get` and `values` evaluate
        elif isinstance(one, list | tuple | ParseResults):
            waiting.extend(one)


plugin.register("dotr", RdflibStore, "dotr.rdflib", "Store")
