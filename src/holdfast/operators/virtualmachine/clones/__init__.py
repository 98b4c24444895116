"""VMClones: machines that are made from other machines, snapshots or images."""
