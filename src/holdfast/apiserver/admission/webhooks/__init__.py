"""Admission webhooks: which are called, how, and what follows from their answers."""
