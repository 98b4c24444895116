"""A command that runs until it is stopped: its address, port and data directory, memory, the signals that end it."""
