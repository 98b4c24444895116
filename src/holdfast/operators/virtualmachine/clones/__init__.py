"""The controller of VMClones."""
