"""Proofs: why an event happened, why a triple holds, and how far a rule came that did not fire.

proofs.py      what an explanation is made of: values
record.py      what is kept of a run: the horizon's graphs and composites, held_statements.py what lasts
history.py     a run up to what is explained
instants.py    any instant that is kept, opened again
derivations.py the smallest proof of a triple at an instant, backwards through the rules
solutions.py   a solution of a query with the triples that it matched
matches.py     a match with its choices, and what stopped one; windows.py what its windows show
checker.py     accepts a proof or names the step that does not follow
text.py, formats.py, provenance.py   renderings
"""
