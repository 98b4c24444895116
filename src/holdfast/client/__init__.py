"""The client of any Kubernetes API: over HTTP, or of a server in the same process."""
