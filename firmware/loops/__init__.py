"""Loops: turns that the kernel language says, and queues that are rolled up again."""
