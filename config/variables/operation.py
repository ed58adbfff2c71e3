"""Metrics and logs."""

from __future__ import annotations

from ipaddress import ip_address

from config.env import Choice, Group, size, text
from config.setting_types import ipv4, port

OPERATION = Group("Metrics and logs")

METRICS_PORT = OPERATION.variable(
    "METRICS_PORT",
    port,
    0,
    "TCP port of the first worker's `/metrics`. Each further worker has the next port.",
    "off",
)

METRICS_HOST = OPERATION.variable(
    "METRICS_HOST",
    ipv4,
    "127.0.0.1",
    "Address of the metrics ports. Addresses other than loopback need `METRICS_TOKEN`.",
)

METRICS_TOKEN = OPERATION.variable(
    "METRICS_TOKEN",
    text,
    "",
    "Token that requests for metrics must send as `Authorization: Bearer`.",
)

LOG_LEVEL = OPERATION.variable(
    "LOG_LEVEL",
    Choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "INFO",
    "Lowest level of the lines in the log on standard error.",
)

LOG_FORMAT = OPERATION.variable(
    "LOG_FORMAT",
    Choice("text", "json"),
    "text",
    "`json` writes one JSON document per line.",
)

REQUEST_LOG = OPERATION.variable(
    "REQUEST_LOG",
    Choice("off", "problems", "all"),
    "off",
    "Requests that are logged: none, those with errors and slow ones, or all.",
)

REQUEST_LOG_SLOW_SECONDS = OPERATION.variable(
    "REQUEST_LOG_SLOW_SECONDS",
    size,
    5,
    "Seconds from which a request counts as slow in `REQUEST_LOG`.",
)


def open_metrics() -> list[str]:
    """Return a sentence if anyone on the network could read the metrics."""
    address = METRICS_HOST.value()
    if not METRICS_PORT.value() or METRICS_TOKEN.value():
        return []
    if ip_address(address).is_loopback:
        return []
    return [
        f"METRICS_TOKEN must be set, because METRICS_HOST {address} is not a loopback address"
    ]
