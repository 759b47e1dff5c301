"""What lasts: statements that hold over periods, and what follows from them (language.md, "What lasts").

instants.py  START HERE: from instant to instant
periods.py   which triples are stated at a time
effects.py   what events state and end
keys.py      by which key it can be divided, for distributed streams
model.py     what follows from them, maintained, and the facts of an instant over it
"""
