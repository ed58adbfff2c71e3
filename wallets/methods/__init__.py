"""The methods of the wallet: four that dapps call, and those that they call through.

`sessions` and `invocation` are what a socket answers, by the registry in `outer`. Behind
wallet_invokeMethod stand the node's methods, `chain` (what a chain's scope has besides)
and `own` (what concerns the wallet itself).
"""
