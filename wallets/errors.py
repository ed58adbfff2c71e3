"""What dapps are told when something is not done, one class for each kind.

A family of its own beside the node's errors: codes and words are those that dapps know
from wallets. They tell a dapp as little as possible about the user: one error for
whatever was not granted, and one for whatever he did not say yes to.
Source: EIP-1193, EIP-1474, CAIP-25; MetaMask's rpc-errors for the words
"""

from __future__ import annotations

from typing import ClassVar


class WalletError(Exception):
    """Raised when a call is answered with an error object.

    code: the error object's number.
    text: its message, where a call needs no other.
    data: what stands in its `data`, None for nothing.
    """

    code: int
    text: ClassVar[str] = ""

    def __init__(self, message: str = "", *, data: object = None) -> None:
        self.message = message or self.text
        self.data = data
        super().__init__(self.message)


class ParseError(WalletError):
    """Raised when a frame is not JSON."""

    code = -32700
    text = (
        "Invalid JSON was received by the server. "
        "An error occurred on the server while parsing the JSON text."
    )


class InvalidRequest(WalletError):
    """Raised when JSON is not a request object."""

    code = -32600
    text = "The JSON sent is not a valid Request object."


class MethodNotFound(WalletError):
    """Raised when a method is not one of the wallet's; its name is shown shortened."""

    code = -32601
    text = "The method does not exist / is not available."

    def __init__(self, method: str) -> None:
        super().__init__(data={"method": method[:128]})


class InvalidParams(WalletError):
    """Raised when a parameter is missing or has the wrong type.

    param: its name, "" for the parameters as a whole.
    path: the place within it, "" for all of it.
    why: what is wrong there.
    """

    code = -32602
    text = "Invalid method parameter(s)."

    def __init__(self, param: str, path: str, why: str) -> None:
        fault = {"param": param, "path": path, "message": why}
        super().__init__(data=[fault])


class InternalError(WalletError):
    """Raised when a call failed in a way that is our fault; the log tells more."""

    code = -32603
    text = "Internal JSON-RPC error."


class ScopesNotSupported(WalletError):
    """Raised when nothing that a dapp asks for is served."""

    code = 5100
    text = "Requested scopes are not supported"


class InvalidSessionProperties(WalletError):
    """Raised when session properties are there and empty."""

    code = 5302
    text = "Invalid sessionProperties requested"


class AlreadyPending(WalletError):
    """Raised when the user has not answered the dapp's last request yet.

    method: what was asked.
    dapp: who asked.
    """

    code = -32002

    def __init__(self, method: str, dapp: str) -> None:
        super().__init__(
            f"Request of type '{method}' already pending for origin {dapp}. "
            "Please wait."
        )


class LimitExceeded(WalletError):
    """Raised when something is asked for too often, or too much of it is open."""

    code = -32005
    text = "Request limit exceeded."


class NotSent(WalletError):
    """Raised when a transaction can't be sent, or its node does not take it.

    code: the node's own where it has said no.
    """

    code = -32000

    def __init__(self, message: str, code: int = -32000, data: object = None) -> None:
        super().__init__(message, data=data)
        self.code = code


class UserRejected(WalletError):
    """Raised when the user said no, did not answer in time, or can't be asked any more."""

    code = 4001
    text = "User rejected the request."


class Unauthorized(WalletError):
    """Raised when a session does not hold what a call needs, or there is no session."""

    code = 4100
    text = "The requested account and/or method has not been authorized by the user."


class BlockedAsSpam(Unauthorized):
    """Raised when a dapp was refused so often that the user is left alone for a while."""

    text = "Request blocked due to spam filter."
