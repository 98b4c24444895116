"""OpenAPI schemas of kinds, at work.

walk         compiles a schema; prunes, defaults and validates objects by it
check        the walk that finds what breaks a schema
nodes        the compiled tree
constraints  the checks of single values, and what they find
formats      the string formats that are checked
messages     findings in the words of the API server
hints        findings in words for the author of a document
structural   what an API server refuses of a schema itself
"""
