"""The wallet's tables: accounts, dapps, sessions, requests, activity log."""

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
from wallets.models.sockets import (
    DEAD_AFTER,
    LiveSocket,
    ServingProcess,
    living_processes,
)

__all__ = [
    "ADD_CHAIN",
    "CREATE_SESSION",
    "DEAD_AFTER",
    "FOR_SESSIONS",
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
    "ServingProcess",
    "Session",
    "TokenQuerySet",
    "living_processes",
]
