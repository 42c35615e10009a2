"""One run of a model, and what came of it: of a cocotb bench (`runner`, `bench_process`, `bench_inside`, `manifest`,
`repeat`, `verdicts`), of arrays through a unit (`evaluate`, `units`, `flits`), and what every device takes and says
(`device`, `result`, `compare`, `waves`, `variant`)."""
