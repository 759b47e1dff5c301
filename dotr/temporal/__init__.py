"""The interface of temporal engines.

Place:   below tesla/ and core/. core/detect.py has the engines by name; the code that runs, counts, cuts or
         names detection depends on these modules and on no engine.

engine_record.py   what a deployment takes from an engine, and the interface of its detectors
stages.py          how far facts got
silences.py        which ticks matter while no graph comes
partitions.py      how detection is cut, and the part of a fact
refusals.py        errors of trigger facts that take too much work
identity.py        names of composite events
equal_terms.py     which terms `=` equates
durations.py       lengths of time as text
"""
