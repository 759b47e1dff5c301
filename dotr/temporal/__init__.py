"""The interface of temporal engines.

Place:   below tesla/ and core/. core/detect.py has the engines by name; the code that runs, counts, cuts or
         names detection depends on these modules and on no engine.

engine_record.py   what a deployment takes from an engine, and asks of its detectors
stages.py          how far facts came
silences.py        which ticks matter while no graph comes
partitions.py      how detection is cut, and where a fact lies
refusals.py        what takes too much work
identity.py        names of composite events
equal_terms.py     which terms `=` equates
durations.py       lengths of time as they are written
"""
