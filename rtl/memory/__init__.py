"""SBUF and PSUM with their banks, arbiters and moves of bytes (docs/memory.md)."""
