"""Tools and platforms in which people already label; each integration stands on the application and its service."""
