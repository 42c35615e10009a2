"""What others say of a vector instruction: QEMU executes records, and what it left is kept as digests."""
