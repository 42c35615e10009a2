"""What can be run, a folder each: parameters, configurations, build, run, report, and whether it passed."""
