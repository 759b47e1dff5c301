"""Which dotr this is.

Place:   below everything: state that an older one derived is known by it.
"""

__version__ = "0.1.0"
