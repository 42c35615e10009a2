"""How near functions are to the truth, and the table that says so."""
