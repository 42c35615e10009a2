"""The Python interface: what `import plexus` offers. plexus.py at the top names it; docs/api.md explains it."""
