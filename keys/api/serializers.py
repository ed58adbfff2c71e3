"""JSON objects that the management API returns."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from keys.agreements import agreement_of
from keys.models import (
    AccessRequest,
    AllowlistKind,
    ApiKey,
    Entitlement,
    KeyEvent,
    KeyVersion,
    Plan,
    User,
)
from keys.plans import Terms
from keys.states import State, live_versions, state_of
from networks.models import Network


class CustomerDocument(serializers.ModelSerializer[User]):
    """A customer, the owner of keys."""

    created_at = serializers.DateTimeField(source="date_joined")

    class Meta:
        model = User
        fields = ["id", "email", "is_active", "created_at"]


class NetworkDocument(serializers.ModelSerializer[Network]):
    """A network, and the tracers that it offers."""

    tracers = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Network
        fields = ["slug", "name", "chain_id", "tracers", "head_number"]


class PlanDocument(serializers.ModelSerializer[Plan]):
    """Limits that many keys share. A limit is null if there is none."""

    class Meta:
        model = Plan
        fields = [
            "slug",
            "name",
            "credits_per_second",
            "burst",
            "credits_per_day",
            "is_default",
        ]


class KeyDocument(serializers.ModelSerializer[ApiKey]):
    """An API key. An empty list of networks means that it is valid for all networks."""

    customer = serializers.IntegerField(source="owner_id")
    customer_email = serializers.EmailField(source="owner.email")
    state = serializers.SerializerMethodField()
    networks: serializers.Field[Any, Any, Any, Any] = serializers.SlugRelatedField(
        slug_field="slug", many=True, read_only=True
    )
    hints = serializers.SerializerMethodField(help_text="Hints of the valid secrets.")

    class Meta:
        model = ApiKey
        fields = [
            "id",
            "customer",
            "customer_email",
            "name",
            "state",
            "is_enabled",
            "networks",
            "hints",
            "expires_at",
            "staff_note",
            "created_at",
            "deleted_at",
        ]

    @extend_schema_field(serializers.ChoiceField(choices=State.choices))
    def get_state(self, api_key: ApiKey) -> str:
        """Return the name of the key's state."""
        return state_of(api_key).value

    def get_hints(self, api_key: ApiKey) -> list[str]:
        """Return the hints of the secrets: parts of them that are not confidential."""
        return [version.hint for version in live_versions(api_key)]


class IssuedKeyDocument(KeyDocument):
    """A new API key, with its first secret if the request asked for it."""

    secret = serializers.CharField(allow_null=True, read_only=True)

    class Meta(KeyDocument.Meta):
        fields = [*KeyDocument.Meta.fields, "secret"]


class VersionDocument(serializers.ModelSerializer[KeyVersion]):
    """A key version: one secret of a key, without the secret text."""

    last_used_at = serializers.SerializerMethodField()
    last_network = serializers.SerializerMethodField()

    class Meta:
        model = KeyVersion
        fields = [
            "id",
            "hint",
            "created_at",
            "expires_at",
            "revoked_at",
            "revoke_reason",
            "last_used_at",
            "last_network",
        ]

    @extend_schema_field(serializers.DateTimeField(allow_null=True))
    def get_last_used_at(self, version: KeyVersion) -> datetime | None:
        """Return the time of the secret's last use, accurate to a few seconds, or None."""
        use = getattr(version, "use", None)
        return use.last_used_at if use else None

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_last_network(self, version: KeyVersion) -> str | None:
        """Return the slug of the network of the secret's last use, or None."""
        use = getattr(version, "use", None)
        return use.last_network.slug if use and use.last_network else None


class IssuedVersionDocument(VersionDocument):
    """A new key version with its secret, which is shown only once."""

    secret = serializers.CharField(allow_null=True, read_only=True)

    class Meta(VersionDocument.Meta):
        fields = [*VersionDocument.Meta.fields, "secret"]


class EntitlementDocument(serializers.ModelSerializer[Entitlement]):
    """Access to tracing on a network.

    An empty list of tracers means all tracers that the network offers.
    """

    network = serializers.CharField(source="network.slug")
    granted_by = serializers.CharField(source="granted_by.email", default=None)
    tracers = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Entitlement
        fields = [
            "network",
            "capability",
            "tracers",
            "expires_at",
            "note",
            "granted_by",
            "granted_at",
        ]


class AllowlistsDocument(serializers.Serializer[ApiKey]):
    """The allowlists of a key, by kind. An empty list allows everything."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Return a list field for each kind of allowlist."""
        return {
            str(kind): serializers.ListField(child=serializers.CharField())
            for kind in AllowlistKind.values
        }

    def to_representation(self, instance: ApiKey) -> dict[str, list[str]]:
        """Return the entries of a key's allowlists, by kind."""
        lists: dict[str, list[str]] = {str(kind): [] for kind in AllowlistKind.values}
        for entry in instance.allowlist.all():
            lists[entry.kind].append(entry.value)
        return lists


class EffectiveDocument(serializers.Serializer[Any]):
    """The limits that apply, from the key's plan and own terms. null means no limit."""

    credits_per_second = serializers.IntegerField(allow_null=True)
    burst = serializers.IntegerField(allow_null=True)
    credits_per_day = serializers.IntegerField(allow_null=True)


class LimitsDocument(serializers.Serializer[ApiKey]):
    """The terms of a key. A limit is null if the plan's limit applies.

    Without a plan, the default plan applies.
    """

    plan = serializers.CharField(allow_null=True)
    credits_per_second = serializers.IntegerField(allow_null=True)
    burst = serializers.IntegerField(allow_null=True)
    credits_per_day = serializers.IntegerField(allow_null=True)
    effective = EffectiveDocument()

    def to_representation(self, instance: ApiKey) -> dict[str, Any]:
        """Return the key's own terms and the limits that apply."""
        agreed = agreement_of(instance)
        limits = agreed.limits
        return {
            "plan": agreed.plan.slug if agreed.plan and agreed.is_named else None,
            **_as_fields(agreed.own),
            "effective": _as_fields(
                Terms(limits.rate, limits.burst, limits.daily) if limits else Terms()
            ),
        }


class AccessRequestDocument(serializers.ModelSerializer[AccessRequest]):
    """A customer's request for access to tracing, and the decision."""

    key = serializers.IntegerField(source="api_key_id")
    network = serializers.CharField(source="network.slug")
    tracers = serializers.ListField(child=serializers.CharField())
    requested_by = serializers.CharField(source="requested_by.email", default=None)
    decided_by = serializers.CharField(source="decided_by.email", default=None)

    class Meta:
        model = AccessRequest
        fields = [
            "id",
            "key",
            "network",
            "tracers",
            "reason",
            "requested_by",
            "requested_at",
            "status",
            "decided_by",
            "decided_at",
            "answer",
            "expires_at",
        ]


class EventDocument(serializers.ModelSerializer[KeyEvent]):
    """A change of a key.

    If there is no actor, the change was made by a command or by the service itself.
    """

    key = serializers.IntegerField(source="api_key_id")
    actor = serializers.CharField(source="actor.email", default=None)
    actor_role = serializers.CharField(
        help_text="Role of a member who acted for another user's account. Otherwise empty."
    )
    token = serializers.CharField(source="token.name", default=None)
    data = serializers.JSONField()  # type: ignore[assignment]  # a field's name, too

    class Meta:
        model = KeyEvent
        fields = [
            *("id", "at", "type", "key"),
            *("actor", "actor_role", "token", "actor_ip", "data"),
        ]


def _as_fields(terms: Terms) -> dict[str, int | None]:
    return {
        "credits_per_second": terms.rate,
        "burst": terms.burst,
        "credits_per_day": terms.daily,
    }
