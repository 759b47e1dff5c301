"""Embedded queries: tree → text, tree → the full engine, tree → compiled delta plans."""
