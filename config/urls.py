"""Addresses of all pages that Django serves. `config.asgi` routes `/v3`."""

from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.templatetags.static import static
from django.urls import include, path
from django.views.generic import RedirectView

from config import error_pages
from guide import home
from guide import views as guide
from guide.error_entries import socket_closes
from guide.urls import pages as guide_pages
from keys.accounts.forms import TellsLockOut
from wallets.guide import openrpc as wallet_openrpc
from wallets.guide import page as wallet
from wallets.guide import provider_errors, wallet_errors
from wallets.pages.connect_script import connect_script

admin.autodiscover()
admin.site.site_header = admin.site.site_title = "Portcullis"
# Lists need the width of the window. The first page links to all of them.
admin.site.enable_nav_sidebar = False

# The form of this site, or that of the second factor's site.
_log_in_form = admin.site.login_form or AdminAuthenticationForm
admin.site.login_form = type("LogInForm", (TellsLockOut, _log_in_form), {})

handler400 = error_pages.bad_request
handler403 = error_pages.forbidden
handler404 = error_pages.not_found
handler500 = error_pages.crashed

sections = {"others": [wallet_errors, provider_errors, socket_closes]}
docs = [
    path("errors", guide.errors, sections, name="errors"),
    *guide_pages,
    path("wallet", wallet, name="wallet"),
]

urlpatterns = [
    path("", home.home, name="home"),
    # Browsers request this path if a page, such as the admin's, names no icon.
    path("favicon.ico", RedirectView.as_view(url=static("portcullis/icon.svg"))),
    path("account/", include("keys.accounts.urls")),
    # The admin's own page neither counts wrong old passwords nor sends an email.
    path(
        "admin/password_change/", RedirectView.as_view(pattern_name="password_change")
    ),
    path("admin/", admin.site.urls),
    path("dashboard/", include("keys.dashboard.urls")),
    path("api/v1/", include("keys.api.urls")),
    path("docs/", include((docs, "docs"))),
    path("docs/errors", guide.errors, sections, name="errors"),
    path("openrpc.json", guide.openrpc, name="openrpc"),
    path("wallet/openrpc.json", wallet_openrpc, name="wallet_openrpc"),
    path("explore/", include("explorer.urls")),
    path("wallet/", include("wallets.urls")),
    path("static/wallet/connect.js", connect_script),
]
