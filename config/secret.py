"""The generated SECRET_KEY of an installation without that setting."""

import os
import secrets
from pathlib import Path


def secret_key(var_dir: Path) -> str:
    """Return the secret key that is stored under VAR_DIR; generate it on the first call.

    Concurrent processes get the same key: only one of them can create the file, and the
    others read it.
    """
    path = var_dir / "secret_key"
    var_dir.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        draft = path.with_name(f"secret_key.{os.getpid()}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
