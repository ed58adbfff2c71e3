"""What a request is told when its key does not open the door.

Malformed and unknown keys are told the same: the checksum is not for guessing. Whoever
shows a revoked or expired key has proven that it was his, and is told what happened.
"""

from __future__ import annotations

from datetime import UTC, datetime

from jsonrpc.errors import RpcError

_REALM = 'Bearer realm="portcullis"'


class OfKnownKey(Exception):
    """Raised when a request is refused whose key is somebody's: he may want to know.

    api_key_id: the key, 0 where nobody has said. network_id: 0 where it is of no matter.
    """

    api_key_id = 0
    network_id = 0


class KeyRequired(RpcError):
    """Raised when a request has no key."""

    http_status = 401
    code = -32002
    reason = "key_required"
    headers = {"WWW-Authenticate": _REALM}

    def __init__(self) -> None:
        super().__init__("API key required in the URL: /v3/<API_KEY>")


class KeyInvalid(RpcError):
    """Raised when a key is malformed or nobody's."""

    http_status = 401
    code = -32002
    reason = "key_invalid"
    headers = {"WWW-Authenticate": f'{_REALM}, error="invalid_token"'}

    def __init__(self) -> None:
        super().__init__("invalid API key")


class TooManyInvalidKeys(RpcError):
    """Raised when an address keeps coming with keys that are malformed or nobody's.

    wait_seconds: after which the next such attempt is looked at again.
    """

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

    version_id: the row of the secret that was shown.
    """

    http_status = 401
    code = -32002
    reason = "key_revoked"
    headers = KeyInvalid.headers

    def __init__(self, version_id: int) -> None:
        super().__init__("this API key was revoked")
        self.version_id = version_id


class KeyExpired(OfKnownKey, RpcError):
    """Raised when a key's time is over.

    expired_at: Unix seconds.
    """

    http_status = 401
    code = -32002
    reason = "key_expired"
    headers = KeyInvalid.headers

    def __init__(self, expired_at: float) -> None:
        moment = f"{datetime.fromtimestamp(expired_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
        super().__init__(f"this API key expired on {moment}", expired_at=moment)


class KeyDisabled(OfKnownKey, RpcError):
    """Raised when staff has disabled a key or its owner, for the time being."""

    http_status = 403
    code = -32002
    reason = "key_disabled"

    def __init__(self) -> None:
        super().__init__("this API key is disabled; contact support")


class NetworkNotEnabled(OfKnownKey, RpcError):
    """Raised when a key does not open a network.

    network: its slug.
    """

    http_status = 403
    code = -32002
    reason = "network_not_enabled"

    def __init__(self, network: str) -> None:
        super().__init__(f"this API key has no access to {network}", network=network)


class _NotAllowed(OfKnownKey, RpcError):
    """What the allowlists of a key refuse has much in common."""

    http_status = 403
    code = -32002
    text = "rejected due to API key settings"


class OriginNotAllowed(_NotAllowed):
    """Raised when the page that a request comes from is not on the key's list."""

    reason = "origin_not_allowed"
    headers = {"Vary": "Origin"}


class UserAgentNotAllowed(_NotAllowed):
    """Raised when a request's User-Agent is not on the key's list."""

    reason = "user_agent_not_allowed"


class AddressNotAllowed(_NotAllowed):
    """Raised when the IP address of a client is not on the key's list."""

    reason = "ip_not_allowed"


class MethodNotAllowlisted(_NotAllowed):
    """Raised when a method is not on the key's list."""

    reason = "method_not_allowed"

    def __init__(self, method: str) -> None:
        super().__init__(f"{self.text}: {method} is not allowed", method=method)


class ContractNotAllowed(_NotAllowed):
    """Raised when a call names an address that is not on the key's list."""

    reason = "contract_not_allowed"

    def __init__(self, address: str) -> None:
        super().__init__(f"{self.text}: {address} is not allowed", address=address)
