"""kubectl's JSONPath: its syntax, and its evaluation."""
