"""The HTTP side of the server: the listener, the gate before the verbs, bodies, options and content types."""
