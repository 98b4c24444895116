"""The mock engine on the command line."""
