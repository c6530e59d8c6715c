"""The version, on the ground floor so that every layer may say it."""

__version__ = "0.2.0"
