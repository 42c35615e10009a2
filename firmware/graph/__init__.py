"""Graphs of operators on whole arrays, and the programs that they become."""
