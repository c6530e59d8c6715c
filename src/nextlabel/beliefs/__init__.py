"""What labels teach: priors and their lattices."""
