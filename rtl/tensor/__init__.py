"""The tensor engine: systolic array, feeds, formats, sparsity (docs/tensor-engine.md, docs/tensor-array.md)."""
