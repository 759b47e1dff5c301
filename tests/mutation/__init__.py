"""Mutation testing: would a test notice if the code were a little wrong? Started by hand."""
