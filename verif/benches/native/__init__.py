"""A stand-in of the native driver, to check the driver itself."""
