"""A whole campaign on this machine: sample items, the real service, a simulated crowd, the certificate."""
