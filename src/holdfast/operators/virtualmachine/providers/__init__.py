"""Providers: hypervisors, and the processes that speak to them."""
