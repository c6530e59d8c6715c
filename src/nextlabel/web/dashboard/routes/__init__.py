"""The addresses of the dashboard: ``campaign`` for what there is, ``create``, ``links`` and ``audit``."""
