"""From matches to composite events (language.md, section 3.5).

events.py     the text and the order of events
templates.py  writers generated from the templates of rules
effects.py    what events state and end, filled in
"""
