"""Proofs of small cells. A module with a tuple PROOFS of verif.formal.proof.Proof takes part in `make formal`."""
