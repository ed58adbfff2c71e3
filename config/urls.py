"""Pages: everything that Django itself answers. `/v3` is routed in `config.asgi`."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from nodeapi.guide import views as guide
from nodeapi.policy import without_scripts

admin.site.site_header = admin.site.site_title = "Portcullis"

login = without_scripts(LoginView.as_view(template_name="account/login.html"))

urlpatterns = [
    path("account/login", login, name="login"),
    path("account/logout", LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    path("dashboard/", include("keys.dashboard.urls")),
    path("docs/", include("nodeapi.guide.urls")),
    path("docs/errors", guide.errors, name="errors"),
    path("openrpc.json", guide.openrpc, name="openrpc"),
    path("explore/", include("nodeapi.explore.urls")),
    path("wallet/", include("wallets.urls")),
]
