"""A pod as values: its facts, what is to be done next, and its status."""
