"""Functions of the scalar engine: tables of cubics, exp."""
