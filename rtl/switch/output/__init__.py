"""What an output takes from the crossbar, and its retry buffer (docs/switch-output.md)."""
