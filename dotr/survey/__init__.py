"""What a sample of the stream says about a program: why a query finds nothing and a rule says nothing.

Place:   `dotr check --sample`, and the end of a run whose rules had no fact; above the four steps, which it
         runs over the sample. Nothing of it is paid for by a run that has facts.
Method:  queries.py runs the program beside probes of it: its queries without their filters, its rules up to
         each conjunct. conditions.py judges what the probes saw, and report.py reports it, with
         the piece of a query's pattern that brings its rows to nothing.
"""
