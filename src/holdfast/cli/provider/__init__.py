"""``holdfast provider``: hypervisors, served by hand."""
