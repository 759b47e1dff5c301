"""TESLA: facts of this and earlier instants become matches of rules (language.md, section 3).

detector.py    START HERE; the same answers as reference/tesla.py, quickly
operators/     EACH, LAST, FIRST, NOT, aggregates: what each keeps, and its code
references.py  what follows from the shape of a program: order, ticks seen, horizons
conditions.py  taking ON and WHERE apart
plan.py        which memory (column_spec.py) serves each conjunct (plan_step.py)
thresholds.py  comparisons with constants that rules of one shape differ in
sharing.py     rules of one shape, answered together
network.py     streams, columns and groups wired together
columns.py     what is remembered of a position, by key, bucket by bucket (buckets.py)
compile.py     a group as one Python function
state.py       snapshots, by rule digest (digest.py)
"""
