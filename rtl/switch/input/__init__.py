"""The buffer of an input: a pool of flits, lists of complete units (docs/switch-buffer.md)."""
