"""Operators: one package per system, each from what is observed to what is done."""
