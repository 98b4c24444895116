"""Connections of clients to containers: commands, and forwarded ports."""
