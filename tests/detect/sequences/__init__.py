"""Sequences: the engine against the literal reading."""
