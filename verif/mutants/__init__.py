"""Faults that nobody planted: Yosys changes single bits of a unit's netlist, and the unit's bench must notice.

python -m verif.mutants [UNIT...]
"""
