"""What a run decides: numbers that it reads, blocks that it leaves out, rows that it finds."""
