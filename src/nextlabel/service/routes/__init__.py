"""The API by resource."""
