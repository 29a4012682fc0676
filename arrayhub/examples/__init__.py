"""Example programs: ``python -m arrayhub demo``."""
