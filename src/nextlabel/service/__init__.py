"""Campaigns over HTTP.

``app`` builds the application; every request passes ``middleware`` and ``auth``; ``routes`` has the API by resource;
``command_queue`` runs commands on the store; ``run`` starts the service.
"""
