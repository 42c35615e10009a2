"""What would make a run shorter: a table of rules, each with what it reads and what it tells (docs/advice.md)."""
