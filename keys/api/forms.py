"""Request bodies of the management API. Unknown fields are rejected."""

from __future__ import annotations

from typing import Any, TypeVar

from django.core.validators import MaxValueValidator, slug_re
from django.db.models import Model
from rest_framework import serializers

from keys.allowlists import MAX_ENTRIES, MAX_LENGTH
from keys.limiter.gcra import MAX_BURST, MAX_RATE
from keys.models import Plan, User
from keys.plans import MIN_BURST
from keys.services import DEFAULT_OVERLAP, OVERLAPS
from networks.models import Network, Tracer

_M = TypeVar("_M", bound=Model)

MAX_QUOTA = 2**63 - 1
"""Largest number that the database column can store."""


class Form(serializers.Serializer[Any]):
    """A request body. A misspelt field is rejected instead of ignored."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the validated values.

        Raises: ValidationError for invalid values and for unknown fields.
        """
        unknown = set(data) - set(self.fields) if isinstance(data, dict) else set()
        if unknown:
            raise serializers.ValidationError(
                {name: ["Unknown field."] for name in sorted(unknown)}
            )
        return super().to_internal_value(data)


class _BySlug(serializers.SlugRelatedField[_M]):
    """A field that contains the slug of a row.

    Malformed slugs are rejected without a query, because PostgreSQL can't store every
    text.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(slug_field="slug", **kwargs)

    def to_internal_value(self, data: Any) -> _M:
        """Return the row. Raises: ValidationError if there is none."""
        if not (isinstance(data, str) and slug_re.match(data)):
            raise serializers.ValidationError(
                "Must be a slug: letters, digits, hyphens and underscores."
            )
        return super().to_internal_value(data)


class _Networks(_BySlug[Network]):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(queryset=Network.objects.all(), **kwargs)


class _Tracers(serializers.ListField):
    def __init__(self, **kwargs: Any) -> None:
        child = serializers.ChoiceField(choices=Tracer.choices)
        super().__init__(child=child, max_length=len(Tracer), **kwargs)


class NewCustomerForm(Form):
    """A new customer."""

    email = serializers.EmailField(max_length=254)


class CustomerForm(Form):
    """Changes of a customer."""

    is_active = serializers.BooleanField()


class NewKeyForm(Form):
    """A new key. If `networks` is absent or empty, it is valid for all networks."""

    customer = serializers.PrimaryKeyRelatedField(
        queryset=User.objects.filter(is_staff=False), source="owner"
    )
    name = serializers.CharField(max_length=100, allow_blank=True, default="")
    networks = _Networks(many=True, default=list)
    expires_at = serializers.DateTimeField(allow_null=True, default=None)
    staff_note = serializers.CharField(max_length=10_000, allow_blank=True, default="")
    with_secret = serializers.BooleanField(
        default=False,
        help_text="Also create the first secret and return it. Otherwise "
        "the customer reveals the secret in the dashboard.",
    )


class KeyForm(Form):
    """Changes of a key. Absent fields stay unchanged."""

    name = serializers.CharField(max_length=100, allow_blank=True, required=False)
    networks = _Networks(many=True, required=False)
    expires_at = serializers.DateTimeField(allow_null=True, required=False)
    staff_note = serializers.CharField(
        max_length=10_000, allow_blank=True, required=False
    )


class ReasonForm(Form):
    """The reason for a change. The customer can read it."""

    reason = serializers.CharField(max_length=200)


class NothingForm(Form):
    """An empty body."""


class NewVersionForm(Form):
    """An additional secret of a key."""

    expires_at = serializers.DateTimeField(allow_null=True, default=None)


class RollForm(Form):
    """The time for which the old secrets stay valid."""

    overlap_seconds = serializers.ChoiceField(
        choices=[int(overlap.total_seconds()) for overlap in OVERLAPS],
        default=int(DEFAULT_OVERLAP.total_seconds()),
    )


class EntitlementForm(Form):
    """The terms of tracing.

    An empty list of tracers means all tracers that the network offers.
    """

    tracers = _Tracers(default=list)
    expires_at = serializers.DateTimeField(allow_null=True, default=None)
    note = serializers.CharField(max_length=200, allow_blank=True, default="")


class AllowlistForm(Form):
    """All entries of one kind of allowlist."""

    values = serializers.ListField(
        child=serializers.CharField(max_length=MAX_LENGTH), max_length=MAX_ENTRIES
    )


class _TermsForm(Form):
    credits_per_second = serializers.IntegerField(
        min_value=1, max_value=MAX_RATE, allow_null=True, default=None
    )
    burst = serializers.IntegerField(
        min_value=MIN_BURST, max_value=MAX_BURST, allow_null=True, default=None
    )
    credits_per_day = serializers.IntegerField(
        min_value=1,
        validators=[MaxValueValidator(MAX_QUOTA)],
        allow_null=True,
        default=None,
    )


class LimitsForm(_TermsForm):
    """A key's own terms. If a limit is null or absent, the plan's limit applies."""

    plan = _BySlug[Plan](queryset=Plan.objects.all(), allow_null=True, default=None)


class PlanForm(_TermsForm):
    """The limits of a plan. If a limit is null or absent, there is none."""

    name = serializers.CharField(max_length=100)
    is_default = serializers.BooleanField(default=False)


class ApprovalForm(Form):
    """The granted part of a request for access.

    If `tracers` is absent, all requested tracers are granted.
    """

    tracers = _Tracers(allow_null=True, default=None)
    expires_at = serializers.DateTimeField(allow_null=True, default=None)
    answer = serializers.CharField(max_length=500, allow_blank=True, default="")


class DeclineForm(Form):
    """The message to the customer."""

    answer = serializers.CharField(max_length=500)
