"""Descriptors: intake by ring, their rules, rows, completion in order."""
