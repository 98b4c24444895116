"""Server-side apply: field sets, merging, and the field managers of an object."""
