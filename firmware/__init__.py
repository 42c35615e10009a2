"""How it is programmed: kernels in a language of tiles, their programs, images of memory (docs/kernels.md)."""
