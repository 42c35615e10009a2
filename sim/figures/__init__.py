"""Figures of performance by what they measure, a file each, for `python -m sim.bench`; `rows` is what a figure is,
`page` writes docs/figures.md."""
