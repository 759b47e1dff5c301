"""Proofs: why an event happened, why a triple holds, and how far a rule came that did not fire.

proofs.py      what an explanation is made of: values
record.py      what is kept of a run: the horizon's graphs and composites, and what lasts; any instant opened
               again
derivations.py the smallest proof of a triple at an instant, backwards through the rules
solutions.py   a solution of a query with the triples that it matched
matches.py     a match with its choices and windows, and what stopped one
checker.py     accepts a proof or names the step that does not follow
text.py, formats.py, explanation.py   renderings
"""
