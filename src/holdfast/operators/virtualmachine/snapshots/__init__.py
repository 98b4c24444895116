"""The controller of VMSnapshots."""
