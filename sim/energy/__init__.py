"""What switches when something happens: toggles of gates, and an index of the energy of a run (docs/energy.md).

`core` and `fabric` say which units there are, how they are driven, and what a run of either spent; the rest is common.
"""
