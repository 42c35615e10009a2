"""The vector engine: element-wise operations, reductions, transposes, quantization (docs/vector-engine.md)."""
