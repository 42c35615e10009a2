"""What switches when something happens: toggles of gates, and an index of the energy of a run (docs/energy.md)."""
