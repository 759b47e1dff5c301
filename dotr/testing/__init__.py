"""Rules as code: tests of rule files, what they cover, and comparisons of two versions over one log.

Place:   above the runners, below cli/. Reads the files that a test file names, and nothing else.
"""
