"""What belongs to other systems: one file or package for each, with their names, formats and rules.

``prolific`` and ``mturk`` are pure: they know what the platform sends and wants, and nothing of campaigns, databases or
HTTP servers, so that pages, the API and the command line can all use them. ``label_studio`` runs beside a server of its
own and stands on the application and its service.
"""
