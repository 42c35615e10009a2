"""How it runs: models built and kept, the native driver, workloads, reports, figures, the command line
(docs/architecture.md)."""
