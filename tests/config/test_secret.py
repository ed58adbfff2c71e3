from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from config.secret import secret_key


def test_the_key_is_made_once_and_kept_private(tmp_path):
    key = secret_key(tmp_path / "var")
    assert len(key) >= 64
    assert secret_key(tmp_path / "var") == key
    assert (tmp_path / "var" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_all_that_start_at_once_agree(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(secret_key, [tmp_path] * 64))
    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]
