"""Energy of a core: its units and their events, what a run of it spent."""
