"""``holdfast backup``, ``restore`` and ``check``: the data directory of a cluster."""
