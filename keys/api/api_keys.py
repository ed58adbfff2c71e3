"""API keys, without their secrets."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from keys.api.filters import address, one_of, read_filters, whole, words
from keys.api.forms import KeyForm, NewKeyForm, NothingForm, ReasonForm
from keys.api.repeats import repeatable
from keys.api.serializers import IssuedKeyDocument, KeyDocument
from keys.api.views import ManagementView, Need
from keys.models import ApiKey, Scope
from keys.services import (
    create_key,
    delete_key,
    disable_key,
    enable_key,
    reveal_key,
    update_key,
)
from keys.states import State, in_state

LOOK = Need(Scope.KEYS_READ, "keys.view_apikey")
CHANGE = Need(Scope.KEYS_WRITE, "keys.change_apikey")
SWITCH = Need(Scope.KEYS_WRITE, "keys.disable_apikey")


def api_keys() -> QuerySet[ApiKey]:
    """Return all keys, including deleted ones, with the related rows for the API."""
    related = ApiKey.objects.select_related("owner")
    return related.prefetch_related("versions", "networks")


def find_key(key: int) -> ApiKey:
    """Return a key. Raises: Http404 if there is no such key."""
    return get_object_or_404(api_keys(), pk=key)


class KeysView(ManagementView):
    """Lists and issues keys."""

    needs = {"GET": LOOK, "POST": Need(Scope.KEYS_WRITE, "keys.add_apikey")}
    filters = {
        "customer": whole("owner", "Id of a customer."),
        "customer_email": address("owner__email", "Full email address of a customer."),
        "network": words(
            "networks__slug",
            "Slug of a network. Keys for all networks are not included.",
        ),
        "hint": words("versions__hint", "Hint of a secret of the key."),
        "state": one_of(
            "state",
            list(State.values),
            "State of the key. By default, all keys except deleted ones.",
        ),
    }

    @extend_schema(responses=KeyDocument(many=True))
    def get(self, request: Request) -> Response:
        """List keys, the newest first."""
        wanted = read_filters(request, self.filters)
        state = wanted.pop("state", None)
        found = api_keys().filter(**wanted).distinct()
        found = in_state(found, state) if state else found.filter(deleted_at=None)
        return self.paged(found, KeyDocument)

    @extend_schema(request=NewKeyForm, responses={201: IssuedKeyDocument})
    @repeatable
    def post(self, request: Request) -> Response:
        """Issue a key.

        The customer reveals its secret in the dashboard. With `with_secret`, the secret
        is made now, and only this response shows it.
        """
        form = NewKeyForm(data=request.data)
        form.is_valid(raise_exception=True)
        terms = dict(form.validated_data)
        with_secret = terms.pop("with_secret")
        secret = None
        with transaction.atomic():
            made = create_key(**terms, actor=self.actor())
            if with_secret:
                secret = reveal_key(api_key=made, actor=self.actor()).secret
        shown = KeyDocument(find_key(made.pk)).data
        return Response({**shown, "secret": secret}, 201)


class KeyView(ManagementView):
    """Returns, changes and deletes one key."""

    needs = {
        "GET": LOOK,
        "PATCH": CHANGE,
        "DELETE": Need(Scope.KEYS_WRITE, "keys.delete_apikey"),
    }

    @extend_schema(responses=KeyDocument)
    def get(self, request: Request, key: int) -> Response:
        """Return a key."""
        return Response(KeyDocument(find_key(key)).data)

    @extend_schema(request=KeyForm, responses=KeyDocument)
    def patch(self, request: Request, key: int) -> Response:
        """Change a key's name, networks, expiry or note."""
        found = find_key(key)
        form = KeyForm(data=request.data)
        form.is_valid(raise_exception=True)
        changes: dict[str, Any] = form.validated_data
        update_key(api_key=found, actor=self.actor(), **changes)
        return Response(KeyDocument(find_key(key)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key: int) -> Response:
        """Revoke all secrets of a key permanently, and hide the key from its owner."""
        delete_key(api_key=find_key(key), actor=self.actor())
        return Response(status=204)


class DisableKeyView(ManagementView):
    """Disables a key."""

    needs = {"POST": SWITCH}

    @extend_schema(request=ReasonForm, responses=KeyDocument)
    def post(self, request: Request, key: int) -> Response:
        """Disable a key until it is enabled again."""
        found = find_key(key)
        form = ReasonForm(data=request.data)
        form.is_valid(raise_exception=True)
        disable_key(api_key=found, actor=self.actor(), **form.validated_data)
        return Response(KeyDocument(find_key(key)).data)


class EnableKeyView(ManagementView):
    """Enables a key."""

    needs = {"POST": SWITCH}

    @extend_schema(request=NothingForm, responses=KeyDocument)
    def post(self, request: Request, key: int) -> Response:
        """Enable a disabled key."""
        found = find_key(key)
        NothingForm(data=request.data).is_valid(raise_exception=True)
        enable_key(api_key=found, actor=self.actor())
        return Response(KeyDocument(find_key(key)).data)
