"""The store: committed objects in memory, a log of them in SQLite, and the history that watches read."""
