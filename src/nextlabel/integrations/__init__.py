"""What belongs to other systems: one file for each, with their names, formats and rules.

``prolific`` and ``mturk`` are pure: they know what the platform sends and wants, and nothing of campaigns, databases or
HTTP servers, so that pages, the API and the command line can all use them.
"""
