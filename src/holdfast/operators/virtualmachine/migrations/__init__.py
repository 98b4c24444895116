"""The controller of VMMigrations."""
