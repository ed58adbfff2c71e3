"""What a wallet user sees: requests, accounts, connections, log.

Views decide nothing: they show what the selectors give and call `wallets.services`.
Every page works without scripts; every change is a POST that is answered with a redirect.
"""
