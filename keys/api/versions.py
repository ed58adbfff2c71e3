"""Key versions: the secrets of keys."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.api_keys import CHANGE, LOOK, find_key
from keys.api.filters import read_filters
from keys.api.forms import NewVersionForm, ReasonForm, RollForm
from keys.api.repeats import repeatable
from keys.api.serializers import IssuedVersionDocument, VersionDocument
from keys.api.views import ManagementView
from keys.models import KeyVersion
from keys.services import IssuedKey, issue_version, revoke_version, roll_key


def versions_of(key: int) -> QuerySet[KeyVersion]:
    """Return the versions of a key. Raises: Http404 if there is no such key."""
    versions = KeyVersion.objects.filter(api_key=find_key(key))
    return versions.select_related("use__last_network", "api_key")


def issued(made: IssuedKey) -> Response:
    """Return the response that shows a new secret. No other response contains it."""
    shown = VersionDocument(made.version).data
    return Response({**shown, "secret": made.secret}, 201)


class VersionsView(ManagementView):
    """Lists and adds the versions of a key."""

    needs = {"GET": LOOK, "POST": CHANGE}

    @extend_schema(responses=VersionDocument(many=True))
    def get(self, request: Request, key: int) -> Response:
        """List the versions of a key, the newest first, without their secrets."""
        read_filters(request, {})
        return self.paged(versions_of(key), VersionDocument)

    @extend_schema(request=NewVersionForm, responses={201: IssuedVersionDocument})
    @repeatable
    def post(self, request: Request, key: int) -> Response:
        """Add a secret to a key. Only this response shows it.

        The other secrets stay valid.
        """
        found = find_key(key)
        form = NewVersionForm(data=request.data)
        form.is_valid(raise_exception=True)
        return issued(
            issue_version(api_key=found, actor=self.actor(), **form.validated_data)
        )


class RollKeyView(ManagementView):
    """Replaces the secrets of a key."""

    needs = {"POST": CHANGE}

    @extend_schema(request=RollForm, responses={201: IssuedVersionDocument})
    @repeatable
    def post(self, request: Request, key: int) -> Response:
        """Replace the secrets of a key by a new one. Only this response shows it.

        The old secrets expire after the overlap, or at their own expiry if that is
        earlier.
        """
        found = find_key(key)
        form = RollForm(data=request.data)
        form.is_valid(raise_exception=True)
        overlap = timedelta(seconds=form.validated_data["overlap_seconds"])
        return issued(roll_key(api_key=found, overlap=overlap, actor=self.actor()))


class RevokeVersionView(ManagementView):
    """Revokes a secret."""

    needs = {"POST": CHANGE}

    @extend_schema(request=ReasonForm, responses=VersionDocument)
    def post(self, request: Request, key: int, version: int) -> Response:
        """Revoke a secret permanently."""
        found = get_object_or_404(versions_of(key), pk=version)
        form = ReasonForm(data=request.data)
        form.is_valid(raise_exception=True)
        revoke_version(version=found, actor=self.actor(), **form.validated_data)
        return Response(VersionDocument(versions_of(key).get(pk=version)).data)
