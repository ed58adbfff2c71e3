"""The methods of the wallet.

Dapps call the session methods (`sessions`, `invoke`), which `outer` dispatches.
wallet_invokeMethod calls the node's methods, those in `chain`, `confirmed` and
`transactions` on a chain's scope, and those in `own` on the wallet's own scope.
"""
