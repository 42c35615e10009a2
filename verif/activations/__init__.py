"""The activation functions: their truth, and the fit of their tables."""
