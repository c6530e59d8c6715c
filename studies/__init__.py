"""Studies: the paper's experiments and our own, as data, with their figures. ``reproduce`` knows them by name."""
