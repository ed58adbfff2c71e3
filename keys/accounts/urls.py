"""URLs of the pages about accounts, below `/account/`."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path
from django.views.generic import TemplateView

from keys.accounts import invitations, overview, passwords, signup
from keys.accounts.forms import LogInForm
from keys.accounts.pages import account_page

login = account_page(
    LoginView.as_view(template_name="account/login.html", authentication_form=LogInForm)
)
sent = TemplateView.as_view(template_name="account/sent.html")

urlpatterns = [
    path("", overview.overview, name="account"),
    path("login", login, name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("signup", signup.signup, name="signup"),
    path("signup/<str:token>", signup.confirm, name="signup_confirm"),
    path("invitations/<str:token>", invitations.invitation, name="invitation"),
    path("mail", account_page(sent), name="mail_sent"),
    path("reset", passwords.reset, name="password_reset"),
    path(
        "reset/<str:uidb64>/<str:token>",
        account_page(passwords.ResetConfirm.as_view()),
        name="password_reset_confirm",
    ),
    path("password", account_page(passwords.Change.as_view()), name="password_change"),
]
