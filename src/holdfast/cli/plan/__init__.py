"""``holdfast plan`` and ``holdfast simulate``: a rollout before it runs."""
