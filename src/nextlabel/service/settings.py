"""How the service is set up: from arguments, then from ``NEXTLABEL_*`` environment variables, then from defaults."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from nextlabel.errors import InputError
from nextlabel.integrations.prolific import Prolific

MIB = 1 << 20
PREFIX = "NEXTLABEL_"
#: Name under which a database keeps the address by which it was served last.
ADDRESS = "address"
#: An address of mail, without names, comments or line ends.
MAIL_ADDRESS = r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9.-]{1,190}"
_HOST = re.compile(r"[a-z0-9.-]{1,253}(?::[0-9]{1,5})?")
#: A host is reached by https, unless its address says http, for tests.
_ORIGIN = re.compile(rf"(?:https?://)?{_HOST.pattern}")


def _checked_host(host: str) -> str:
    if not host or any(c.isspace() for c in host):
        raise InputError(f"host {host!r} is not an address.", "Give e.g. 127.0.0.1.")
    return host


def _checked_url(url: str) -> str:
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
        raise InputError(f"public address {url!r} is not that of a site.", "Give e.g. https://labels.example.org.")
    return url.rstrip("/")


def _checked_names(hosts: str, pattern: re.Pattern[str], hint: str) -> str:
    """Host names between commas, in small letters."""
    names = [name.lower().rstrip("/") for name in _listed(hosts)]
    for name in names:
        if pattern.fullmatch(name) is None:
            raise InputError(f"{name!r} is not a host name.", hint)
    return ", ".join(names)


def _checked_drops(statuses: str) -> str:
    names = [Prolific().normal_status(name) for name in _listed(statuses)]
    for name in names:
        if Prolific().meaning_of(name) == "keeps":
            raise InputError(f"{name!r} is not a status that ends a submission.", "Give e.g. RETURNED.")
    return ", ".join(names)


def _listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _names(pattern: re.Pattern[str], hint: str) -> Any:
    return AfterValidator(lambda hosts: _checked_names(hosts, pattern, hint))


Hosts = Annotated[str, _names(_HOST, "Give e.g. app.prolific.com or hooks.internal:8080, separated by commas.")]
Origins = Annotated[str, _names(_ORIGIN, "Give e.g. worker.mturk.com, separated by commas.")]


class ServiceSettings(BaseSettings):
    """Where the service listens and what it allows; ``NEXTLABEL_PORT`` sets ``port``, and so on.

    Workers' links begin with ``public_url``; cookies are marked secure if that is an https address, unless
    ``cookie_secure`` says otherwise. With ``open_metrics``, the metrics can be read without a token.
    With ``log_names`` the log of requests names workers; people who have not worked for ``keep_names_days``
    are erased, unless it is 0. With ``traces``, spans of OpenTelemetry are made.
    ``key_file`` holds the key that signs links, if it is not in its usual place (``service.links``).
    Limits are explained in ``service.limits`` and ``service.connections``; addresses of senders are taken from the
    header X-Forwarded-For if one of ``trusted_proxies`` sent it. ``completion_hosts`` are the sites, separated by
    commas, to which a link may send workers when they finish. ``frame_hosts`` are those that may show the workers' page
    in a frame, and ``submit_hosts`` those to which it hands an assignment back from there (``web.worker.session``).
    ``prolific_secret`` is the secret of Prolific's webhooks, or several; ``prolific_drops`` are statuses of submissions
    whose labels are dropped, beside REJECTED. ``webhook_hosts`` are hosts, perhaps with a port, that webhooks may go to
    although they are in a private network or not https; a receiver has ``webhook_seconds`` to reply. Mail goes out by
    the server at ``smtp``, from ``mail_from``.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: Annotated[str, AfterValidator(_checked_host)] = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65_535)
    public_url: Annotated[str, AfterValidator(_checked_url)] = ""
    processes: int = Field(1, ge=1)
    max_body_bytes: int = Field(MIB, ge=1)
    max_upload_bytes: int = Field(512 * MIB, ge=1)
    max_page_bytes: int = Field(4 * MIB, ge=1)
    max_header_bytes: int = Field(32_768, ge=1024)
    max_connections: int = Field(1000, ge=1)
    head_seconds: float = Field(10.0, gt=0)
    body_seconds: float = Field(30.0, gt=0)
    worker_moves_per_minute: int = Field(60, ge=1)
    new_workers_per_hour: int = Field(30, ge=1)
    failed_sign_ins_per_minute: int = Field(10, ge=1)
    trusted_proxies: str = "127.0.0.1, ::1"
    cookie_secure: bool | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    open_metrics: bool = False
    log_names: bool = False
    traces: bool = False
    keep_names_days: float = Field(0.0, ge=0)
    shutdown_seconds: int = Field(10, ge=1)
    key_file: str = ""
    completion_hosts: Hosts = "app.prolific.com, app.prolific.co"
    frame_hosts: Origins = (
        "worker.mturk.com, workersandbox.mturk.com, www.mturk.com, requester.mturk.com, requestersandbox.mturk.com"
    )
    submit_hosts: Origins = "www.mturk.com, workersandbox.mturk.com"
    prolific_secret: str = ""
    prolific_drops: Annotated[str, AfterValidator(_checked_drops)] = ""
    webhook_hosts: Hosts = ""
    webhook_seconds: float = Field(10.0, ge=1, le=60)
    smtp: str = Field("", pattern=r"^(smtps?://\S+)?$")
    mail_from: str = Field("", pattern=rf"^({MAIL_ADDRESS})?$")

    def __init__(self, **given: Any) -> None:
        """Arguments win over the environment; None leaves a setting to it."""
        try:
            super().__init__(**{name: value for name, value in given.items() if value is not None})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise InputError(
                f"{name} {str(first['input'])[:80]!r} is not allowed: {first['msg'][:1].lower()}{first['msg'][1:]}.",
                f"Set it by a flag or by {PREFIX}{name.upper()}.",
            ) from None

    @model_validator(mode="after")
    def _default_cookies(self) -> ServiceSettings:
        if self.cookie_secure is None:
            object.__setattr__(self, "cookie_secure", self.is_https)
        return self

    def completes_at(self, host: str) -> bool:
        """Whether a link may send workers to a host when they finish."""
        return host.lower() in self.completion_hosts.split(", ")

    @property
    def frame_origins(self) -> tuple[str, ...]:
        """The sites that may show the workers' page in a frame."""
        return _origins(self.frame_hosts)

    @property
    def submit_origins(self) -> tuple[str, ...]:
        """The sites to which the workers' page hands an assignment back."""
        return _origins(self.submit_hosts)

    @property
    def prolific_secrets(self) -> tuple[str, ...]:
        """The secrets with one of which Prolific signs its webhooks."""
        return tuple(_listed(self.prolific_secret))

    @property
    def drop_statuses(self) -> tuple[str, ...]:
        """Statuses of Prolific's submissions whose labels are dropped, beside REJECTED."""
        return tuple(_listed(self.prolific_drops))

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the service by https."""
        return self.public_url.startswith("https://")

    @property
    def base_url(self) -> str:
        """What links begin with."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # where it listens everywhere, also here
        return self.public_url or f"http://{host}:{self.port}"

    def environment(self) -> dict[str, str]:
        """The variables from which another process reads the same settings."""
        return {PREFIX + name.upper(): str(value) for name, value in self.model_dump().items()}


def _origins(hosts: str) -> tuple[str, ...]:
    return tuple(name if "://" in name else f"https://{name}" for name in _listed(hosts))
