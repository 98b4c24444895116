"""Pure decisions: what a fleet of replicas needs next, and the conditions and reasons that report it.

Nothing here reads a clock, a socket, a file or a random number: a decision is a
function of the values it is given, and `now` is one of them.
"""
