"""The JavaScript tracers that come with the service, by geth's names for its own."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "bundled"

BUNDLED_TRACERS: dict[str, str] = {
    path.stem: path.read_text() for path in sorted(_FOLDER.glob("*.js"))
}
"""Sources by name."""


def tracer_source(tracer: str) -> str:
    """Return the source of a bundled tracer; anything else is source already."""
    return BUNDLED_TRACERS.get(tracer, tracer)
