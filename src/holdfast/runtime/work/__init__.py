"""Queues of keys, and the workers that take from them."""
