"""What a kernel says to each engine: k.tensor, k.vector, k.scalar."""
