"""TESLA: facts of this and earlier instants become matches of rules (language.md, section 3).

oracle.py      the meaning, by enumeration; short enough to read against the table
engine.py      the same answers, quickly: START HERE
references.py  what follows from the shape of a program: order, ticks seen, horizons
conditions.py  taking ON and WHERE apart
plan.py        which memory serves each conjunct
thresholds.py  comparisons with constants that rules of one shape differ in
sharing.py     rules of one shape, answered together
network.py     streams, columns and groups wired together
columns.py     what is remembered of a position, by key (keys.py), bucket by bucket (buckets.py, totals.py)
compile.py     a group as one Python function; selection.py, negation.py and aggregation.py write conjuncts
state.py       snapshots, by rule digest (digest.py)
identity.py    names of composite events
"""
