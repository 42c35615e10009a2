"""Instructions from HBM to the engines: fetch, checks, one queue an engine, semaphores (docs/issue.md)."""
