"""What detection shares with those who run, count and cut it.

Place:   below tesla/ and core/.

stages.py          how far facts got
silences.py        which ticks matter while no graph comes
partitions.py      how detection is cut, and the part of a fact
refusals.py        errors of trigger facts that take too much work
identity.py        names of composite events
equal_terms.py     which terms `=` equates
durations.py       lengths of time as text
"""
