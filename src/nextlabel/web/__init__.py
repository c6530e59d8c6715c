"""The web pages: the workers' page and the requester's dashboard, rendered on the server and usable without scripts.

``pages`` adds them to the service; ``render`` makes HTML from templates; ``static_files`` serves style sheets and
scripts; ``origin`` refuses forms of other sites; ``worker`` and ``dashboard`` are the pages themselves.
"""
