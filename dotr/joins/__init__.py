"""The join kernel: conjunctive triple patterns with filters, planned once, run many times.

Place:   below enrich/ and windows/ (bodies of rules) and extract/ (basic graph patterns); above the
         background index and the overlay of rdf/.

How to use it
    store = materialiser.store                      # background + overlay of the instant (enrich/)
    items = [triple_pattern(Var("o"), ROOM, Var("r")), triple_pattern(Var("o"), RDF_TYPE, SMOKE), *filters]
    outputs = [Var("o"), Var("r")]

    static   run = compile_plan(plan(items, outputs, store, view=View.OLD), store)
             rows = []; run(rows.append)            # answers of the closed background alone, repeats kept
    new      for i, item in enumerate(items): if isinstance(item, BodyPattern):
                 p = plan(items, outputs, store, views=delta_views(items, i), first=i)
             every answer that is new because of the overlay, each once over all i; wake p when
             store.changes(item.relation) is touched. Plans in which a relation without background is to be
             KEPT vanish: their functions are empty (`source_of(f)` shows it).
    gone     the same with withdrawn_views(items, i): old answers that the instant removes. Needed only if
             a relation of the items is in store.volatile.
    now      plan(items, outputs, store)            # everything that holds at the instant (View.NEW)
    bound    plan(items, outputs, store, given=["r"]) → run(rows.append, value_of_r)
    exists   compile_plan(…, store, AnySolution()) → run(…) → bool

    Plans may be compiled at any time; best before the first instant, because the functions that insert
    triples are rewritten when a plan requests a new index. At an instant's end
             for changes in store.overlay.touched: for f in changes.readers: …
    lists what the instant touched; `readers` is a list for the caller's own use. `store.moment.now` is NOW().

What is where
    plan.py       relations, variables, bodies (BodyPattern AbsentPattern RowFilter Assign Check, View), and
                  items
                  in order: JoinPlan; a plan as text
    store.py      background + overlay + tables, generic lookup
    code.py       plan → generated function (codegen.py); sinks; Annotation
    filters.py    expressions over rows, and what generated code charges for its loops
    paths.py      property paths: automata and strong components

Not handled here: OPTIONAL, MINUS, UNION, groups (extract/ builds them over these functions), blank nodes in
patterns (variables), and equality by value (joins compare terms, filters compare values).
"""
