"""A run as a page: one HTML file that asks for nothing outside itself."""
