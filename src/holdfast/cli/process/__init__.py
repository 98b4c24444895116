"""A command that runs until it is stopped: its address and port, its data directory, the signals that end it."""
