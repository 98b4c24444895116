"""``holdfast apiserver``: the API server in this process, alone or as a part of a cluster."""
