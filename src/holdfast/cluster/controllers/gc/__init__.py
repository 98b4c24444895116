"""The garbage collector: the graph of owners, and the deletion of objects whose owners are gone."""
