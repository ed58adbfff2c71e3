"""The JavaScript tracers that are part of the service, under geth's names."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "bundled"

BUNDLED_TRACERS: dict[str, str] = {
    path.stem: path.read_text() for path in sorted(_FOLDER.glob("*.js"))
}
"""Sources by name."""


def tracer_source(tracer: str) -> str:
    """Return the source of a bundled tracer. Any other text is returned as source."""
    return BUNDLED_TRACERS.get(tracer, tracer)
