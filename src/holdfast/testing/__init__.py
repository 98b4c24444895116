"""The test kit: clusters in virtual time, clients that fail, and the contract that every controller keeps.

Public, so that operators of other projects are tested as those of Holdfast are.
"""
