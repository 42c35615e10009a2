"""Vectors of the golden hart: Zve32x as ratified in RVV 1.0, operations of NumPy on whole register groups."""
