"""The wallet."""

from __future__ import annotations

from config.env import Group, boolean, count, duration

WALLET = Group("Wallet")

WALLETS_REQUEST_SECONDS = WALLET.variable(
    "WALLETS_REQUEST_SECONDS",
    duration,
    300.0,
    "Seconds for which a dapp's request stays open for the user's decision. The default"
    " is the lifetime of a WalletConnect proposal.",
)

WALLETS_MAX_PENDING = WALLET.variable(
    "WALLETS_MAX_PENDING",
    count,
    5,
    "Maximum number of pending requests of one user, over all dapps.",
)

WALLETS_TOKEN_DAYS = WALLET.variable(
    "WALLETS_TOKEN_DAYS",
    duration,
    90.0,
    "Days after its last use for which a connection token stays valid.",
)

WALLETS_HISTORY_DAYS = WALLET.variable(
    "WALLETS_HISTORY_DAYS",
    duration,
    365.0,
    "Days for which decided requests and the activity log are kept.",
)

WALLETS_ECHO_TO_REQUESTER = WALLET.variable(
    "WALLETS_ECHO_TO_REQUESTER",
    boolean,
    False,
    "Whether the socket whose call changed a session receives `wallet_sessionChanged`"
    " as well, as in MetaMask.",
)
