"""Sequences: rows in, matches out, each at the instant at which it is certain (language.md, "Sequences").

sequence.py    START HERE; owns the partitions of a sequence, its deadlines, its snapshot
automaton.py   a pattern as an automaton whose states are in order of preference
registers.py   what a mapping carries for ON and WITH: first and last rows, counts, sums
code.py        generated: the conditions of elements, what rows do to registers, the values of WITH
feed.py        generated: the rows of an instant of one source
partition.py   what partitions have in common
merged.py      partitions whose conditions look at the row and PREV only: starts in groups, states merged
apart.py       all other partitions: every mapping by itself
loop.py        sequences in the detector's generated loop
"""
