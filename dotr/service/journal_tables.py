"""The tables of a deployment's database, and how older ones become these.

Place:   under journal.py, with lasting_tables.py and kept_tables.py, which have tables of their own.
"""

from __future__ import annotations

from dotr.service.kept_tables import TABLES as KEPT
from dotr.service.lasting_tables import TABLES as LASTING
from dotr.service.row_sums import TABLES as SUMS

FORMAT = 7
"""Of the tables. Those of an older one are brought up to date (`UPDATES`), a newer one is refused."""

POSITIONS = """
CREATE TABLE positions (source TEXT NOT NULL, part TEXT NOT NULL, position TEXT NOT NULL,
                        PRIMARY KEY (source, part)) WITHOUT ROWID;
"""

TABLES = (
    """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (place INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE texts (path TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE removed (rule TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (rule, file)) WITHOUT ROWID;
CREATE TABLE background (id INTEGER PRIMARY KEY CHECK (id = 1), hash TEXT NOT NULL, triples BLOB NOT NULL);
CREATE TABLE closed (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL, hash BLOB NOT NULL,
                     content BLOB NOT NULL);
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), snapshot BLOB NOT NULL, status TEXT NOT NULL);
CREATE TABLE outputs (path TEXT PRIMARY KEY, format TEXT NOT NULL, length INTEGER NOT NULL,
                      tail TEXT NOT NULL DEFAULT '') WITHOUT ROWID;
"""
    + POSITIONS
    + LASTING
    + KEPT
    + SUMS
)

_FILES = """
INSERT INTO positions
    SELECT 'files', file, json_array(how, "end", carried, size, hash, finished) FROM sources;
DROP TABLE sources;
"""

UPDATES = {
    1: """
ALTER TABLE removed RENAME TO removed_before;
CREATE TABLE removed (rule TEXT NOT NULL, file TEXT NOT NULL, PRIMARY KEY (rule, file)) WITHOUT ROWID;
INSERT INTO removed SELECT rule, path FROM removed_before, files;
DROP TABLE removed_before;
CREATE TABLE closed (id INTEGER PRIMARY KEY CHECK (id = 1), key TEXT NOT NULL, hash BLOB NOT NULL,
                     content BLOB NOT NULL);
""",
    2: LASTING,
    3: "ALTER TABLE outputs ADD COLUMN tail TEXT NOT NULL DEFAULT '';",
    4: KEPT,
    5: POSITIONS + _FILES,
    6: SUMS,
}
"""Format → the statements that make the next one of it."""
