"""JSON-RPC errors for requests that their API key does not authorize.

Malformed and unknown keys get the same error, so that the checksum does not help guessing.
A client with a revoked or expired key once had a valid one, and gets the exact reason.
"""

from __future__ import annotations

from datetime import UTC, datetime

from jsonrpc.errors import RpcError

_REALM = 'Bearer realm="portcullis"'


class OfKnownKey(Exception):
    """Base of errors that the owner of an existing key sees in their statistics.

    api_key_id: the key, or 0 while it is unknown.
    network_id: 0 if the error does not depend on the network.
    """

    api_key_id = 0
    network_id = 0


class KeyRequired(RpcError):
    """Raised when a request has no key."""

    remedy = (
        "Append the key to the URL (/v3/<API_KEY>), or send the header Authorization: "
        "Bearer <API_KEY>."
    )
    http_status = 401
    code = -32002
    reason = "key_required"
    headers = {"WWW-Authenticate": _REALM}

    def __init__(self) -> None:
        super().__init__("API key required in the URL: /v3/<API_KEY>")


class KeyInvalid(RpcError):
    """Raised when a key is malformed or unknown."""

    remedy = (
        "Check that the key is complete and belongs to this service. If it is lost, "
        "roll it in the dashboard."
    )
    http_status = 401
    code = -32002
    reason = "key_invalid"
    headers = {"WWW-Authenticate": f'{_REALM}, error="invalid_token"'}

    def __init__(self) -> None:
        super().__init__("invalid API key")


class TooManyInvalidKeys(RpcError):
    """Raised when an address has sent too many malformed or unknown keys.

    wait_seconds: time after which another such key gets the usual error.
    """

    remedy = "Correct the key, then wait for the time in Retry-After."
    http_status = 429
    code = -32005
    reason = "too_many_invalid_keys"

    def __init__(self, wait_seconds: int) -> None:
        super().__init__(
            "invalid API key, and too many requests with such keys from this address"
        )
        self.headers = {"Retry-After": str(wait_seconds)}


class KeyRevoked(OfKnownKey, RpcError):
    """Raised when a key was revoked.

    version_id: id of the revoked secret.
    """

    remedy = (
        "Use the newest secret of the key, or roll the key in the dashboard. If the key "
        "was deleted, create another one."
    )
    http_status = 401
    code = -32002
    reason = "key_revoked"
    headers = KeyInvalid.headers

    def __init__(self, version_id: int) -> None:
        super().__init__("this API key was revoked")
        self.version_id = version_id


class KeyExpired(OfKnownKey, RpcError):
    """Raised when a key has expired.

    expired_at: Unix seconds.
    """

    remedy = (
        "Use the newest secret of the key, or roll the key in the dashboard. If the key "
        "itself has expired, ask support to extend it, or create another key."
    )
    http_status = 401
    code = -32002
    reason = "key_expired"
    headers = KeyInvalid.headers

    def __init__(self, expired_at: float) -> None:
        moment = f"{datetime.fromtimestamp(expired_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f"this API key expired on {moment}", expired_at=moment)


class KeyDisabled(OfKnownKey, RpcError):
    """Raised when a key, or the account of its owner, is disabled."""

    remedy = (
        "Enable the key in the dashboard. If support has disabled it, only support can "
        "enable it."
    )
    http_status = 403
    code = -32002
    reason = "key_disabled"

    def __init__(self) -> None:
        super().__init__("this API key is disabled; contact support")


class NetworkNotEnabled(OfKnownKey, RpcError):
    """Raised when a key does not grant access to a network.

    network: its slug.
    """

    remedy = "Use or create a key that has access to the network."
    http_status = 403
    code = -32002
    reason = "network_not_enabled"

    def __init__(self, network: str) -> None:
        super().__init__(f"this API key has no access to {network}", network=network)


class _NotAllowed(OfKnownKey, RpcError):
    """Base of errors for requests that an allowlist of the key rejects."""

    http_status = 403
    code = -32002
    text = "rejected due to API key settings"


class OriginNotAllowed(_NotAllowed):
    """Raised when the origin of the requesting page is not on the key's allowlist."""

    remedy = "Add the origin of the page to the allowlist of the key, in the dashboard."
    reason = "origin_not_allowed"
    headers = {"Vary": "Origin"}


class UserAgentNotAllowed(_NotAllowed):
    """Raised when a request's User-Agent is not on the key's allowlist."""

    remedy = (
        "Add the User-Agent of your program to the allowlist of the key, in the "
        "dashboard."
    )
    reason = "user_agent_not_allowed"


class AddressNotAllowed(_NotAllowed):
    """Raised when the IP address of a client is not on the key's allowlist."""

    remedy = (
        "Add the IP address of your server to the allowlist of the key, in the "
        "dashboard."
    )
    reason = "ip_not_allowed"


class MethodNotAllowlisted(_NotAllowed):
    """Raised when a method is not on the key's allowlist."""

    remedy = "Add the method to the allowlist of the key, in the dashboard."
    reason = "method_not_allowed"

    def __init__(self, method: str) -> None:
        super().__init__(f"{self.text}: {method} is not allowed", method=method)


class ContractNotAllowed(_NotAllowed):
    """Raised when a call names an address that is not on the key's allowlist.

    address: None for a filter that names no address, and so means all of them.
    """

    remedy = "Add the contract to the allowlist of the key, in the dashboard."
    reason = "contract_not_allowed"

    def __init__(self, address: str | None) -> None:
        if address is None:
            super().__init__(f"{self.text}: a filter without addresses is not allowed")
        else:
            super().__init__(f"{self.text}: {address} is not allowed", address=address)
