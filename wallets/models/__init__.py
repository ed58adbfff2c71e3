"""A wallet user's accounts, the dapps that he has met, and what he lets them do."""

from wallets.models.accounts import Account
from wallets.models.activities import Activity, Actor, Event
from wallets.models.dapps import (
    BlockedDapp,
    Dapp,
    DappKind,
    DappToken,
    FailedPairing,
    Pairing,
    TokenQuerySet,
)
from wallets.models.keystores import Keystore
from wallets.models.requests import (
    ADD_CHAIN,
    CREATE_SESSION,
    FOR_SESSIONS,
    UNDECIDED,
    ConsentRequest,
    ConsentRequestQuerySet,
    RequestState,
)
from wallets.models.sessions import Session
from wallets.models.sockets import PROCESS_LOCKS, LiveSocket, living_processes

__all__ = [
    "ADD_CHAIN",
    "CREATE_SESSION",
    "FOR_SESSIONS",
    "PROCESS_LOCKS",
    "UNDECIDED",
    "Account",
    "Activity",
    "Actor",
    "BlockedDapp",
    "ConsentRequest",
    "ConsentRequestQuerySet",
    "Dapp",
    "DappKind",
    "DappToken",
    "Event",
    "FailedPairing",
    "Keystore",
    "LiveSocket",
    "Pairing",
    "RequestState",
    "Session",
    "TokenQuerySet",
    "living_processes",
]
