"""The secret key of an installation that was given none."""

import os
import secrets
from pathlib import Path


def secret_key(var_dir: Path) -> str:
    """Return the secret key kept under VAR_DIR, made on the first call.

    Two processes that start at once agree: the file is created exclusively, and
    whoever comes second reads what the first one wrote.
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
