"""A hosted multichain wallet, and the sessions that dapps hold with it.

From the bottom up:

- `caip`, `scopes`, `permissions`, `proposals`, `identity`, `errors`: what may be
  requested and granted, as pure functions. They use no Django, no database and no
  clock.
- `models`; `offers` and `consents`: what a user's wallet can grant, and what a request
  asks.
- `services`: every write. Its transaction also logs and announces it (`changes`).
- `serving`: what a serving process reads, and how it is notified.
- `nodes`: calls to the node that serves the wallet.
- `methods.outer.answer`: handles a dapp's call; `openrpc` and `schemas` describe the
  methods to programs.

`consumers` has the Channels consumers of WebSockets, `routing` their paths, and `sockets`
what they share. `pages.tokens` exchanges a code for a token. `client` is a library with
which programs connect as dapps. A socket uses the other parts as follows:

1. Handshake: `services.presence.admit` returns the token with its dapp, or a refusal. A
   socket belongs to one dapp until it closes, and has a unique name (`Peer.socket`).
2. Calls: the socket handles envelope, batches and ids. For each call it runs
   `answer(Context(…), method, params)`, which returns an `Answer` or raises WalletError
   or RpcError; both have code, message and data. Calls run concurrently, because a
   wallet_createSession takes minutes. The socket sends a response and adopts its
   `session` in one step.
3. Changes: `serving.watch.subscribe_dapp` calls back, and `serving.store.dapp` reads the state. A newer
   version whose scopes differ from the last ones that were sent becomes a
   wallet_sessionChanged, unless `changed_by` is this socket, because its own response
   reports it. (With WALLETS_ECHO_TO_REQUESTER the event is sent before that response.)
   Before that frame, subscriptions that the session no longer allows end. A socket
   whose token is not in `live_tokens`, or whose dapp is not welcome, is closed.
4. Heads: the feed reads the blocks after the last one sent, then the versions of the
   sessions. If a version is not the known one, the session is read first.
5. Close: calls in progress are cancelled, and the socket waits for them, because a
   wallet_createSession withdraws its request.

The pages use `services` for every decision, `consents.get_consent` with its digest for
the consent page, and `serving.watch.subscribe_user` for the inbox.

A signature has a request of its own kind (`signature_requests`, `services.signatures`):
`methods.confirmed` makes it, and `pages.signatures` shows it and signs it with the key
in the account's keystore (`services.keystores`). `signing` computes signatures and uses
no Django. `effects` reads from the chain what the pages say about transactions, tokens
and balances.
"""
