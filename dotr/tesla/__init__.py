"""TESLA: facts of this and earlier instants become matches of rules (language.md, section 3).

detector.py    START HERE; the same answers as reference/tesla.py, fast
operators/     EACH, LAST, FIRST, NOT, aggregates: what each keeps, and its code
references.py  what follows from the shape of a program: order, ticks seen, horizons
batch_loop.py  the generated loop over instants
conditions.py  analysis of ON and WHERE
plan.py        which column (column_spec.py) serves each conjunct (plan_step.py)
thresholds.py  comparisons with the constants in which rules of one shape differ
sharing.py     rules of one shape, answered together
network.py     streams, columns and groups wired together
columns.py     the stored facts of a position, by key, in buckets (buckets.py)
compile.py     a group as one Python function
state.py       snapshots, by rule digest (digest.py)
"""
