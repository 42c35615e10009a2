"""Benches of SBUF, PSUM and their RAM."""
