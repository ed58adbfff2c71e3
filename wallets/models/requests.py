"""Requests of dapps that wait for their user."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from wallets.models.dapps import Dapp


class RequestState(models.TextChoices):
    """The state of a request. Only pending requests can be decided.

    An approved transaction is being sent until its node has responded; then it is
    approved or failed.
    """

    PENDING = "pending", "pending"
    APPROVED = "approved", "approved"
    REJECTED = "rejected", "rejected"
    EXPIRED = "expired", "expired"
    WITHDRAWN = "withdrawn", "withdrawn"
    SENDING = "sending", "being sent"
    FAILED = "failed", "failed"


UNDECIDED = frozenset({RequestState.PENDING, RequestState.SENDING})
"""The states that are not final."""

CREATE_SESSION = "wallet_createSession"
"""Requests a session. A dapp may have one such request pending."""

ADD_CHAIN = "wallet_addEthereumChain"
"""Requests one more chain for an existing session. A dapp may have one such request
pending."""

FOR_SESSIONS = frozenset({CREATE_SESSION, ADD_CHAIN})
"""Methods that request a session or additional scopes. All others request a signature.
"""


class ConsentRequestQuerySet(models.QuerySet["ConsentRequest"]):
    """Queries for dapps' requests."""

    def pending(self) -> ConsentRequestQuerySet:
        """Return the requests that can still be decided."""
        return self.filter(state=RequestState.PENDING, expires_at__gt=timezone.now())

    def for_sessions(self) -> ConsentRequestQuerySet:
        """Return the requests for sessions, and for more scopes of them."""
        return self.filter(method__in=FOR_SESSIONS)

    def for_signatures(self) -> ConsentRequestQuerySet:
        """Return the requests for signatures, including transactions."""
        return self.exclude(method__in=FOR_SESSIONS)


class ConsentRequest(models.Model):
    """A request to the user, while a dapp's call waits for the decision."""

    dapp = models.ForeignKey(Dapp, on_delete=models.CASCADE, related_name="requests")
    method = models.CharField(max_length=64, help_text="Name of the called method.")
    body = models.JSONField(
        help_text="The parameters, in a form that depends on the method."
    )
    state = models.CharField(
        max_length=9, choices=RequestState.choices, default=RequestState.PENDING
    )
    outcome = models.JSONField(
        null=True, blank=True, help_text="The result of an approved call."
    )
    socket = models.CharField(
        max_length=36, help_text="Id of the socket that receives the response."
    )
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
        """The approved signature or transaction hash; "" before the approval."""
        return str((self.outcome or {}).get("result", ""))
