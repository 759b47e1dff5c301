"""Knowledge that lasts, as a library: an incremental RDF reasoner, `dotr.KnowledgeBase`."""

from dotr.knowledge_base.knowledge_base import Change, KnowledgeBase, Watch
from dotr.knowledge_base.model import Contradiction, ContradictionError, Proof
from dotr.knowledge_base.prepared_queries import Answers, PreparedQuery, Solution

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
