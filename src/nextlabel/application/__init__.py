"""Live campaigns as an application: one service class, a Python facade, certificate, forecast, overview."""
