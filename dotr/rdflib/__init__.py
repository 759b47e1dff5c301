"""dotr for programs that use rdflib: `rdflib.Graph(store="dotr")` reasons. See rdflib_store.py.

rdflib finds the store through an entry point of the installed package; if dotr is not installed, importing
this module registers it.
"""

from rdflib import plugin
from rdflib.store import Store as _RdflibStore

from dotr.rdflib.rdflib_store import Store

__all__ = ["Store"]

plugin.register("dotr", _RdflibStore, "dotr.rdflib.rdflib_store", "Store")
