"""VMMigrations: machines that move to another provider."""
