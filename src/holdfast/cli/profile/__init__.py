"""``holdfast profile``: which configuration of a model meets a service level."""
