"""VMSnapshots: states of machines to go back to, taken once or on a schedule."""
