"""``holdfast tui``: all objects on one screen, live, and the page of each; with the keys of k9s."""
