"""Pure decisions: what a fleet needs next, and how to say so.

Nothing here reads a clock, a socket, a file or a random number: a decision is a
function of the values it is given, and `now` is one of them.
"""
