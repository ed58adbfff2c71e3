"""What a user is asked while a dapp's call waits."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from wallets.models.dapps import Dapp


class RequestState(models.TextChoices):
    """What became of a request; only pending ones can be decided.

    A transaction that was approved is being sent, until its node has said what came of
    that: then it is approved or failed.
    """

    PENDING = "pending", "pending"
    APPROVED = "approved", "approved"
    REJECTED = "rejected", "rejected"
    EXPIRED = "expired", "expired"
    WITHDRAWN = "withdrawn", "withdrawn"
    SENDING = "sending", "being sent"
    FAILED = "failed", "failed"


UNDECIDED = frozenset({RequestState.PENDING, RequestState.SENDING})
"""The states that are followed by another one."""

CREATE_SESSION = "wallet_createSession"
"""The call of which a dapp may have one waiting at a time."""

ADD_CHAIN = "wallet_addEthereumChain"
"""Asks for one more chain in a session that there is; likewise."""

FOR_SESSIONS = frozenset({CREATE_SESSION, ADD_CHAIN})
"""The calls that ask for a session, or more of it; all others ask for a signature."""


class ConsentRequestQuerySet(models.QuerySet["ConsentRequest"]):
    """Words of the trade for requests."""

    def pending(self) -> ConsentRequestQuerySet:
        """Return the requests that can still be decided."""
        return self.filter(state=RequestState.PENDING, expires_at__gt=timezone.now())

    def for_sessions(self) -> ConsentRequestQuerySet:
        """Return the requests for sessions, and for more of them."""
        return self.filter(method__in=FOR_SESSIONS)

    def for_signatures(self) -> ConsentRequestQuerySet:
        """Return the requests for signatures, of transactions too."""
        return self.exclude(method__in=FOR_SESSIONS)


class ConsentRequest(models.Model):
    """A question to the user, while a dapp's call waits for the answer."""

    dapp = models.ForeignKey(Dapp, on_delete=models.CASCADE, related_name="requests")
    method = models.CharField(max_length=64, help_text="What the dapp has called.")
    body = models.JSONField(help_text="What is asked, in the form of the method.")
    state = models.CharField(
        max_length=9, choices=RequestState.choices, default=RequestState.PENDING
    )
    outcome = models.JSONField(
        null=True, blank=True, help_text="What an approved call is answered with."
    )
    socket = models.CharField(max_length=36, help_text="Who waits for the answer.")
    asked_from = models.GenericIPAddressField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    objects = ConsentRequestQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["dapp"],
                condition=models.Q(state=RequestState.PENDING, method=CREATE_SESSION),
                name="wallet_one_pending_session",
            )
        ]
        indexes = [
            models.Index(
                fields=["socket"],
                condition=models.Q(state=RequestState.PENDING),
                name="wallet_pending_by_socket",
            ),
            models.Index(fields=["state", "-id"], name="wallet_request_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.method} of {self.dapp}"

    @property
    def result(self) -> str:
        """The signature, or the hash of the transaction, that was approved."""
        return str((self.outcome or {}).get("result", ""))
