"""Serving of static files."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware

GENERATED = frozenset({"/static/wallet/connect.js"})
"""URLs below the static ones that are served by views."""


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves each file as one body; the files have at most some hundred KB.

    WhiteNoise returns an open file, which Django would read piece by piece in a thread
    under ASGI, with a warning for each request.
    """

    _listed: ClassVar[dict[tuple[str, str], Any]] = {}
    """Files with their sizes, dates and headers, by path and URL. The fork server fills it,
    so that no forked process does so again."""

    def add_file_to_dictionary(self, url: str, *args: Any, **kwargs: Any) -> None:
        """Add a file, unless a view serves its URL.

        An older version may have collected it.
        """
        if url not in GENERATED:
            super().add_file_to_dictionary(url, *args, **kwargs)

    def get_static_file(
        self, path: str, url: str, stat_cache: dict[str, Any] | None = None
    ) -> Any:
        """Return a file. stat_cache: of the list of all files, None for a single one."""
        if stat_cache is None:
            return super().get_static_file(path, url)
        if (path, url) not in self._listed:
            found = super().get_static_file(path, url, stat_cache)
            self._listed[path, url] = found
        return self._listed[path, url]

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
