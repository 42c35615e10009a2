"""Why to believe it: golden models, agents, benches, checks, proofs (docs/verification.md)."""
