"""Pages of wallet users: requests, accounts, connections, activity.

Views show what selectors return and call `wallets.services`. Pages work without scripts,
except the answer to a web page's pairing. Every change is a POST that is answered with a
redirect.

- A POST with a consent carries the digest of the page that the user saw, and an edit the
  session's version. A decision on changed data is answered 409 and the page is shown again.
- Every button except *Approve* rejects, and so does the return key. *Approve* accepts no
  click in its first second. A consent needs a log-in that is at most twelve hours old.
- The content policy of each page (`policy`) allows only the page's own scripts. No page can
  be framed or cached.
- A window that connect.js opens shows `/wallet/?of=<origin>`, which leads to that origin's
  latest request. `?of=` is passed along until the decision.
- Only these windows keep their opener (`wallets.middleware`), which notices when the user
  closes them. The pairing window sends the code by `postMessage` to the origin that the
  user has seen, and to no other.
"""
