"""Embedded queries: tree → text, tree → compiled delta plans, or interpreted; the full engine beside them."""
