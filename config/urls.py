"""Pages: everything that Django itself answers. `/v3` is routed in `config.asgi`."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import TemplateView

from keys.policy import without_scripts
from nodeapi.guide import views as guide

admin.site.site_header = admin.site.site_title = "Portcullis"

home = without_scripts(TemplateView.as_view(template_name="home.html"))

urlpatterns = [
    path("", home, name="home"),
    path("account/", include("keys.accounts.urls")),
    path("admin/", admin.site.urls),
    path("dashboard/", include("keys.dashboard.urls")),
    path("api/v1/", include("keys.api.urls")),
    path("docs/", include("nodeapi.guide.urls")),
    path("docs/errors", guide.errors, name="errors"),
    path("openrpc.json", guide.openrpc, name="openrpc"),
    path("explore/", include("nodeapi.explore.urls")),
    path("wallet/", include("wallets.urls")),
]
