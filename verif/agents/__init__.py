"""Signals to transactions and back; the only place where benches touch a signal."""
