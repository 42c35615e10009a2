"""Numbers that every room shares: pure standard library, no hardware, no NumPy."""
