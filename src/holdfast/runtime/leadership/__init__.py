"""Which of several processes works: leases, elections, and the end of a term."""
