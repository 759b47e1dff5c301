"""TESLA: facts of this and earlier instants become matches of rules (language.md, section 3).

detector.py    START HERE; the generated loop over instants; the same answers as reference/tesla.py, fast
operators.py   EACH, LAST, FIRST, NOT, aggregates: what each keeps, and its code
analysis.py    what follows from the shape of a program: order, ticks seen, horizons, ON and WHERE
plan.py        which column serves each conjunct (plan_step.py), and rules of one shape answered together
thresholds.py  comparisons with the constants in which rules of one shape differ
network.py     streams, columns and groups wired together
columns.py     the stored facts of a position, by key, in buckets
totals.py      running aggregates, also of rules that differ in thresholds
code.py        a group as one Python function
dead_ends.py   which candidates no match can be completed from: left out of the search
scope.py       what this code reads: facts, terms, work
state.py       snapshots, by rule digest (digest.py)
timeline.py    when heads of LARS rules held
partitioning.py  how detection is cut by key
sequences/     sequences: order with repetition
"""
