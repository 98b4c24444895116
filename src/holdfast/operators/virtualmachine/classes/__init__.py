"""VMClasses: sizes of machines."""
