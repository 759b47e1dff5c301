"""Knowledge that lasts, as a library: an incremental RDF reasoner, `dotr.KnowledgeBase`."""

from dotr.knowledge_base.changes import Change, Watch
from dotr.knowledge_base.contradictions import Contradiction, ContradictionError
from dotr.knowledge_base.knowledge_base import KnowledgeBase
from dotr.knowledge_base.prepared_queries import Answers, PreparedQuery, Solution
from dotr.knowledge_base.triple_proofs import Proof

__all__ = [
    "Answers",
    "Change",
    "Contradiction",
    "ContradictionError",
    "KnowledgeBase",
    "PreparedQuery",
    "Proof",
    "Solution",
    "Watch",
]
