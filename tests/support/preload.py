"""What the fork server of the tests imports: that of the service, with the setup of KZG.

Trace workers load the setup when they are idle, which takes up to 2 s of each server.
"""

from __future__ import annotations

from config import preload
from evm import kzg

after_fork = preload.after_fork
kzg.prepare()
