"""Speaks to any Kubernetes API: over HTTP, or to a server in the same process."""
