"""Campaigns over HTTP: the app factory, who may do what, limits, errors as problem details, and the routes.

``app`` puts it together; ``door`` what every request passes; ``auth`` who it is; ``writer`` how commands reach the
store; ``routes`` by resource; ``run`` starts it.
"""
