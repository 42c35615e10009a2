"""`python -m sim.explore SWEEP.toml`, as `plexus explore` does."""

import sys

from sim.cli import main

sys.argv.insert(1, "explore")
sys.exit(main())
