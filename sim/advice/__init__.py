"""What bounds a run (`bounding`), and what would make it shorter: a table of rules, each with what it reads and what it
tells (docs/advice.md)."""
