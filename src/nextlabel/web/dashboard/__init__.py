"""The requester's dashboard.

``mount`` puts it on the service; ``gate`` who may see it; ``figures`` what the states of tasks say; ``outlook``,
``forecasts`` and ``team`` what takes longer, worked out in the background; ``view`` a campaign as templates show it;
``csv_files``, ``drafts``, ``founding`` and ``curves`` how a campaign is made; ``routes`` the addresses.
"""

from nextlabel.web.dashboard.mount import mount_dashboard

__all__ = ["mount_dashboard"]
