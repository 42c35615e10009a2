"""Energy of links and switches: beats of their flits, rows of their buffers, bits on wires."""
