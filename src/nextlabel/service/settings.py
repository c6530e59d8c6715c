"""What the service is set up with, checked once."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from nextlabel.errors import InputError

LEVELS = ("debug", "info", "warning", "error")
MIB = 1 << 20


@dataclass(frozen=True)
class Settings:
    """Where the service listens and what it allows.

    ``public_url`` is what workers' links begin with; ``cookie_secure`` follows it unless given. ``open_metrics`` lets
    anybody who reaches the port read the metrics.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    most_body: int = MIB
    most_upload: int = 512 * MIB
    cookie_secure: bool | None = None
    log_level: str = "info"
    open_metrics: bool = False
    shutdown_s: int = 10

    def __post_init__(self) -> None:
        if not self.host or any(c.isspace() for c in self.host):
            raise InputError(f"host {self.host!r} is not an address.", "Give e.g. 127.0.0.1.")
        if not 0 <= self.port <= 65_535:
            raise InputError(f"port {self.port} is not from 0 to 65535.", "Give e.g. 8000.")
        if min(self.most_body, self.most_upload, self.shutdown_s) < 1:
            raise InputError("a limit of the service is below 1.", "Give a number of bytes or seconds.")
        if self.log_level not in LEVELS:
            raise InputError(f"log level {self.log_level!r} is unknown.", f"Use one of {', '.join(LEVELS)}.")
        if self.public_url:
            parts = urlsplit(self.public_url)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
                raise InputError(
                    f"public address {self.public_url!r} is not one of a site.", "Give e.g. https://labels.example.org."
                )
            object.__setattr__(self, "public_url", self.public_url.rstrip("/"))
        if self.cookie_secure is None:
            object.__setattr__(self, "cookie_secure", self.public_url.startswith("https://"))

    @property
    def base_url(self) -> str:
        """What links begin with."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.public_url or f"http://{host}:{self.port}"

    def to_json(self) -> str:
        """One line of JSON, for processes that are started."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """The inverse."""
        return cls(**json.loads(text))
