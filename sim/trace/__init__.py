"""What a run did in time: recorded by the driver, kept beside the report, and what follows from it."""
