"""Commands on objects of any kind: get, describe, apply, delete, wait, kubectl."""
