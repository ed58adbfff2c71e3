"""What the first pages of a process would build: routes, templates, the list of static files.

It takes 0.2 s, and the fork server does it once for all processes.
"""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.core.validators import validate_email
from django.template import Engine
from django.template.loader import get_template
from django.template.utils import get_app_template_dirs
from django.urls import reverse
from django.utils.formats import get_format
from django.utils.module_loading import import_string

from config.pages import Pages

_PAGES = (
    "home",
    *("admin:index", "api:openapi", "dashboard:keys"),
    *("docs:index", "explore:index", "wallet:inbox"),
)
"""A page of each namespace. Django builds its table of URLs with the first URL."""


def prepare() -> None:
    """Build what all processes need for pages. No setting of one process matters for it."""
    for page in _PAGES:
        reverse(page)
    engine = Engine.get_default()
    for folder in (*engine.dirs, *get_app_template_dirs("templates")):
        for path in Path(str(folder)).rglob("*.html"):
            get_template(str(path.relative_to(str(folder))))
    assert engine.template_context_processors  # imports them
    import_string(settings.MESSAGE_STORAGE)
    get_format("DATE_FORMAT")
    validate_email("somebody@example.org")  # compiles its patterns
    Pages()
