"""``holdfast up``, ``down`` and ``chaos``: a cluster in one process."""
