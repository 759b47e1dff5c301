"""The pages of `dotr check --explain`, by groups of codes. explain.py puts them together."""
