"""The numbers that fields of built-in kinds have in protocol buffers."""
