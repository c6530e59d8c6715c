"""The web pages: the workers' page and the requester's dashboard, rendered on the server and usable without scripts.

``pages`` adds them to the service; ``render`` makes HTML from templates and serves style sheets and scripts; ``worker``
and ``dashboard`` are the pages themselves.
"""
