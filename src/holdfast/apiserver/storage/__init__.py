"""The store.

store        reads, writes and watches; group commit
entries      the values: objects, changes, events
memory       committed objects in memory, and the stage on which a batch of changes is decided
sqlite_log   the log on disk
backups      all objects as lines of JSON
recovery     what of a damaged log is whole, and a new log made of that
history      the window of recent events that watches read
"""
