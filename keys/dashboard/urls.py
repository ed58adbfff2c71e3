"""URLs of the dashboard, below `/dashboard/`."""

from __future__ import annotations

from django.urls import path

from keys.dashboard import (
    activity,
    allowlists,
    api_keys,
    connect,
    members,
    secrets,
    tracing,
    usage,
)

app_name = "dashboard"
urlpatterns = [
    path("", api_keys.index, name="keys"),
    path("account", members.switch, name="switch"),
    path("members", members.index, name="members"),
    path("members/invite", members.invite_form, name="invite"),
    path("members/leave", members.leave, name="leave"),
    path("members/<int:member_pk>/role", members.role, name="change_role"),
    path("members/<int:member_pk>/remove", members.remove, name="remove_member"),
    path(
        "members/invitations/<int:invitation_pk>/resend",
        members.resend,
        name="resend_invitation",
    ),
    path(
        "members/invitations/<int:invitation_pk>/withdraw",
        members.withdraw,
        name="withdraw_invitation",
    ),
    path("keys/first", secrets.first, name="first"),
    path("keys/new", api_keys.create, name="create"),
    path("keys/<int:pk>", api_keys.key, name="key"),
    path("keys/<int:pk>/rename", api_keys.rename, name="rename"),
    path("keys/<int:pk>/disable", api_keys.disable, name="disable"),
    path("keys/<int:pk>/enable", api_keys.enable, name="enable"),
    path("keys/<int:pk>/delete", api_keys.delete, name="delete"),
    path("keys/<int:pk>/reveal", secrets.reveal, name="reveal"),
    path("keys/<int:pk>/roll", secrets.roll, name="roll"),
    path("keys/<int:pk>/secrets/<int:version_pk>", secrets.revoke, name="revoke"),
    path("keys/<int:pk>/connect", connect.connect, name="connect"),
    path("keys/<int:pk>/allowlists", allowlists.allowlists, name="allowlists"),
    path("keys/<int:pk>/tracing", tracing.tracing, name="tracing"),
    path("keys/<int:pk>/tracing/<slug:slug>", tracing.ask, name="ask"),
    path(
        "keys/<int:pk>/tracing/requests/<int:request_pk>/withdraw",
        tracing.withdraw,
        name="withdraw",
    ),
    path("keys/<int:pk>/usage", usage.usage, name="usage"),
    path("keys/<int:pk>/usage.csv", usage.export, name="usage_csv"),
    path("keys/<int:pk>/activity", activity.activity, name="activity"),
    path("keys/<int:pk>/activity.csv", activity.activity_csv, name="activity_csv"),
]
