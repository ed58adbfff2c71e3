"""Pages: everything that Django itself answers. `/v3` is routed in `config.asgi`."""

from django.contrib import admin
from django.urls import path

from nodeapi import pages

admin.site.site_header = admin.site.site_title = "Portcullis"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("docs/errors", pages.errors, name="errors"),
]
