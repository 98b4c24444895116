"""One pass over an object: from its key to its writes, its status and its Events."""
