"""Live campaigns as an application: campaigns of a store and in Python, certificate, forecast, overview."""
