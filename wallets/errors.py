"""The wallet's JSON-RPC errors, one class for each kind.

They are separate from the node's errors, because dapps expect the codes and messages of
wallets. They disclose as little as possible about the user: one error for everything
that was not granted, and one for every request that was not approved.
Source: EIP-1193, EIP-1474, CAIP-25; MetaMask's rpc-errors for the messages
"""

from __future__ import annotations

from typing import ClassVar


class WalletError(Exception):
    """Raised when a call gets an error response.

    code: the error object's code.
    text: the message, unless the constructor gets another one.
    data: the error object's `data`, None for none.
    remedy: what the dapp can do, as sentences for the page of errors.
    """

    code: int
    text: ClassVar[str] = ""
    remedy: ClassVar[str] = ""

    def __init__(self, message: str = "", *, data: object = None) -> None:
        self.message = message or self.text
        self.data = data
        super().__init__(self.message)


class ParseError(WalletError):
    """Raised when a frame is not JSON."""

    remedy = "Send valid JSON."
    code = -32700
    text = (
        "Invalid JSON was received by the server. "
        "An error occurred on the server while parsing the JSON text."
    )


class InvalidRequest(WalletError):
    """Raised when JSON is not a request object."""

    remedy = (
        'Send an object with "jsonrpc": "2.0", a method, and an id that is a number or '
        "a string."
    )
    code = -32600
    text = "The JSON sent is not a valid Request object."


class MethodNotFound(WalletError):
    """Raised when the wallet has no such method. A long name is shortened."""

    remedy = "Check the spelling. The page about the wallet lists its methods."
    code = -32601
    text = "The method does not exist / is not available."

    def __init__(self, method: str) -> None:
        super().__init__(data={"method": method[:128]})


class InvalidParams(WalletError):
    """Raised when a parameter is missing or has the wrong type.

    param: its name, "" for the parameters as a whole.
    path: the place within the parameter, such as `eip155:1.methods[2]`; "" for all of
        it.
    why: the fault at that place.
    """

    remedy = "Correct the parameter that data names."
    code = -32602
    text = "Invalid method parameter(s)."

    def __init__(self, param: str, path: str, why: str) -> None:
        fault = {"param": param, "path": path, "message": why}
        super().__init__(data=[fault])


class InternalError(WalletError):
    """Raised when a call fails because of an error in the service, which is logged."""

    remedy = "Try again. If the error persists, contact support."
    code = -32603
    text = "Internal JSON-RPC error."


class ScopesNotSupported(WalletError):
    """Raised when the wallet serves none of the requested scopes."""

    remedy = "Request chains that the wallet serves."
    code = 5100
    text = "Requested scopes are not supported"


class InvalidSessionProperties(WalletError):
    """Raised when `sessionProperties` is an empty object."""

    remedy = "Omit sessionProperties."
    code = 5302
    text = "Invalid sessionProperties requested"


class AlreadyPending(WalletError):
    """Raised when the dapp's last request is still pending.

    method: of the pending request.
    dapp: the dapp's name.
    """

    remedy = "Wait until the user has decided on the pending request."
    code = -32002

    def __init__(self, method: str, dapp: str) -> None:
        super().__init__(
            f"Request of type '{method}' already pending for origin {dapp}. "
            "Please wait."
        )


class LimitExceeded(WalletError):
    """Raised when calls are too frequent, or too many requests are pending."""

    remedy = "Wait, and send fewer calls."
    code = -32005
    text = "Request limit exceeded."


class NotSent(WalletError):
    """Raised when a transaction can't be sent, or its node rejects it.

    code: the node's own error code if it rejected the transaction.
    """

    remedy = "Correct the transaction as the message says."
    code = -32000

    def __init__(self, message: str, code: int = -32000, data: object = None) -> None:
        super().__init__(message, data=data)
        self.code = code


class UserRejected(WalletError):
    """Raised when the user rejected a request, did not answer in time or can't answer."""

    remedy = "Ask the user, and send the request again only if they want it."
    code = 4001
    text = "User rejected the request."


class Unauthorized(WalletError):
    """Raised when the session does not allow a call, or there is no session."""

    remedy = (
        "Request a session with wallet_createSession that has the method, the chain "
        "and the account."
    )
    code = 4100
    text = "The requested account and/or method has not been authorized by the user."


class BlockedAsSpam(Unauthorized):
    """Raised when a dapp's requests are blocked for a while after several rejections."""

    remedy = "Wait before you send a request again."
    text = "Request blocked due to spam filter."
