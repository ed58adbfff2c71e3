"""Serving of static files."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

GENERATED = frozenset({"/static/wallet/connect.js"})
"""URLs below the static ones that are served by views."""


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves each file as one body; the files have at most some hundred KB.

    WhiteNoise returns an open file, which Django would read piece by piece in a thread
    under ASGI, with a warning for each request.
    """

    def add_file_to_dictionary(self, url: str, *args: Any, **kwargs: Any) -> None:
        """Add a file, unless a view serves its URL.

        An older version may have collected it.
        """
        if url not in GENERATED:
            super().add_file_to_dictionary(url, *args, **kwargs)

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        """Return a response with the file or a range of it, or 304 if it is unchanged."""
        found = static_file.get_response(request.method, request.META)
        body = b""
        if found.file is not None:
            with found.file:
                body = found.file.read()
        response = HttpResponse(body, status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response
