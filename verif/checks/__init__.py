"""What benches measure themselves by: coverage and comparison."""
