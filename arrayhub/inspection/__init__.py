"""What an array is, shown: its type, its memory, and why it can or cannot reach a library."""
