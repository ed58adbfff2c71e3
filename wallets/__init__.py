"""Area B: a hosted multichain wallet and the sessions that dapps hold with it.

From the bottom up; everything is reached through these:

- `caip`, `scopes`, `permissions`, `proposals`, `identity`, `errors`: what may be asked for
  and granted, as pure functions. They know no Django, no database and no clock.
- `models`; `offers` and `consents`: what a user's wallet can do, and what he is asked.
- `services`: every write. Each logs and announces itself with its commit (`changes`).
- `store`, `watch`, `service`: what a serving process reads, and how it learns to look.
- `methods.outer.answer`: what a dapp's call is answered with; `openrpc` and `schemas`
  describe it to programs.

`sockets` is what dapps are connected to, `tokens` where a code becomes a token, `client` a
dapp's side of both, for programs. What a socket does with the rest:

1. Handshake: `services.presence.admit` gives the token with its dapp, or refuses. One
   socket is one dapp's as long as it lives, and has a name of its own (`Peer.socket`).
2. Frames: envelope, batches and ids are the socket's. For each call it runs
   `answer(Context(…), method, params)`, which returns an `Answer` or raises WalletError or
   RpcError; both have code, message and data. A wallet_createSession takes minutes: calls
   run side by side. Writing an answer and taking over its `session` is one step.
3. Changes: `watch.follow_dapp` calls back, `store.dapp` says what holds. A newer version
   whose scopes differ from what this socket was told is a wallet_sessionChanged, unless
   `changed_by` is this socket: its own answer tells it. (With WALLETS_ECHO_TO_REQUESTER
   the event is written before that answer.) Before that frame is written,
   subscriptions of scopes that are gone, or no longer hold them, end. A socket whose
   token is not among `live_tokens`, or whose dapp is not welcome, is closed.
4. Heads: blocks are read on from the one that was sent last, then the versions of the
   sessions. Where one is not the version that is known, it is looked at before.
5. Close: calls that are under way are cancelled, and waited for: a wallet_createSession
   takes its request back.

What the pages do: `services` for all that is decided, `consents.get_consent` with its
digest for the consent page, `watch.follow_user` for the inbox.

A signature is a request of its own kind (`signatures`, `services.signatures`), asked by
`methods.confirmed`, shown and signed by `pages.signatures` with the key in the account's
keystore (`services.keystores`). `signing` knows what is signed, and no Django.
"""
