"""Programs to run and to copy from: ``python -m arrayhub demo``."""
