"""What people look at: fragments of HTML for pages and notebooks, with one style and without script.

Place:   below everything that shows something. A fragment is made of plain values (strings, numbers, trees of
         lines); nothing here knows a rule, a term or a clock.
Method:  a fragment is a string of HTML in which every string that came from outside is escaped; `page` makes
         a file that needs nothing else of some, `fragment` what a notebook shows. Lines open and close by
         `<details>`, pictures are SVG, and colours follow the system, light or dark.
Why not: a library of charts: a page would carry it, and notebooks that are not trusted run no script.

markup.py    START HERE: elements, and the page around them
timeline.py  marks along time, a lane for each kind
tree.py      lines below lines that open and close: proofs
bars.py      steps of a funnel, and counts beside each other
graph.py     boxes and arrows in layers
table.py     rows under a head
style.css    all of the look, in the colours of the console (serve/console/style.css); a test compares them
"""
