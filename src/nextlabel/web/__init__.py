"""Pages: the worker's and the requester's, made on the server and working without scripts.

``pages`` mounts them on the service; ``render`` makes HTML, ``static_files`` serves what it needs, ``origin`` refuses
forms of other sites; ``worker`` is the page on which labels are given.
"""
