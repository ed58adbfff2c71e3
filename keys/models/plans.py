"""Limits of keys: plans, and terms of a single key."""

from __future__ import annotations

from typing import ClassVar

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from keys.limiter.gcra import MAX_BURST, MAX_RATE
from keys.models.api_keys import ApiKey
from keys.plans import MIN_BURST
from legible.fields import NameField


class LimitFields(models.Model):
    """A rate, a burst and a daily quota. Each is optional."""

    credits_per_second = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_RATE)],
    )
    burst = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(MIN_BURST), MaxValueValidator(MAX_BURST)],
        help_text="Credits that can be spent at once. Empty: twice the credits per second.",
    )
    credits_per_day = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Resets at 00:00 UTC.",
    )

    class Meta:
        abstract = True
        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.CheckConstraint(
                condition=Q(credits_per_second=None)
                | Q(credits_per_second__range=(1, MAX_RATE)),
                name="%(class)s_rate",
            ),
            models.CheckConstraint(
                condition=Q(burst=None) | Q(burst__range=(MIN_BURST, MAX_BURST)),
                name="%(class)s_burst",
            ),
            models.CheckConstraint(
                condition=Q(credits_per_day=None) | Q(credits_per_day__gte=1),
                name="%(class)s_day",
            ),
        ]


class Plan(LimitFields):
    """Limits that many keys share. An empty field means no limit."""

    slug = models.SlugField(unique=True)
    name = NameField(max_length=100)
    is_default = models.BooleanField(
        default=False, help_text="Applies to keys without a plan."
    )

    class Meta(LimitFields.Meta):
        abstract = False
        ordering = ["credits_per_second"]
        constraints = [
            *LimitFields.Meta.constraints,
            models.UniqueConstraint(
                fields=["is_default"],
                condition=Q(is_default=True),
                name="plan_one_default",
                violation_error_message="Another plan is the default. Unset it there first.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class KeyLimits(LimitFields):
    """The terms of one key: a plan, and limits that replace the plan's."""

    api_key = models.OneToOneField(
        ApiKey, primary_key=True, on_delete=models.CASCADE, related_name="limits"
    )
    plan = models.ForeignKey(
        Plan,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Empty: the default plan.",
    )

    class Meta(LimitFields.Meta):
        abstract = False
        verbose_name_plural = "limits"

    def __str__(self) -> str:
        return str(self.plan or "the default plan")
