"""Cells and interfaces without opinion, shared by all units."""
