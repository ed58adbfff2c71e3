from __future__ import annotations

import json
from threading import Thread

import pytest

from wallets.signing import keys
from wallets.signing.keys import (
    WrongPassphrase,
    address_of,
    decrypt,
    encrypt,
    new_key,
    read_key,
    read_keystore,
)
from wallets.signing.turns import TooBusy

SECRET = "7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d"
CRYPTO = {
    "cipher": "aes-128-ctr",
    "cipherparams": {"iv": "83dbcc02d8ccb40e466191a123791e0e"},
    "ciphertext": "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
    "kdf": "scrypt",
    "kdfparams": {
        "dklen": 32,
        "n": 262144,
        "r": 1,
        "p": 8,
        "salt": "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
    },
    "mac": "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
}
SCRYPT = {"crypto": CRYPTO, "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6", "version": 3}
PBKDF2 = {
    "crypto": {
        "cipher": "aes-128-ctr",
        "cipherparams": {"iv": "6087dab2f9fdbbfaddc31a909735c1e6"},
        "ciphertext": "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
        "kdf": "pbkdf2",
        "kdfparams": {
            "c": 262144,
            "dklen": 32,
            "prf": "hmac-sha256",
            "salt": "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
        },
        "mac": "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
    },
    "id": "3198bc9c-6672-5ab3-d995-4942343ae5b6",
    "version": 3,
}
"""The test vectors of the Web3 Secret Storage definition."""


@pytest.mark.parametrize("document", [SCRYPT, PBKDF2], ids=["scrypt", "pbkdf2"])
def test_keystores_of_the_definition_open(document):
    keystore = read_keystore(json.dumps(document))
    assert decrypt(keystore, "testpassword", owner=1).hex() == SECRET
    with pytest.raises(WrongPassphrase):
        decrypt(keystore, "testpasswort", owner=1)


def test_names_in_other_case_are_understood():
    """Some wallets write `Crypto` instead of `crypto`."""
    document = {"Crypto": PBKDF2["crypto"], "version": 3}
    assert (
        decrypt(read_keystore(json.dumps(document)), "testpassword", owner=1).hex()
        == SECRET
    )


def test_new_key_rests_in_a_keystore_and_comes_back():
    key = new_key()
    assert key != new_key()
    keystore = encrypt(key, "pässphrase 🗝", scrypt_n=1024, owner=1)
    assert keystore["crypto"]["kdfparams"]["n"] == 1024
    assert key.hex() not in json.dumps(keystore)
    assert "0x" + keystore["address"].lower() == address_of(key)
    assert decrypt(read_keystore(json.dumps(keystore)), "pässphrase 🗝", owner=1) == key
    for wrong in ("", "passphrase", "pässphrase 🗝 "):
        with pytest.raises(WrongPassphrase):
            decrypt(keystore, wrong, owner=1)


@pytest.mark.parametrize("text", [SECRET, "0x" + SECRET, f" {SECRET.upper()}\n"])
def test_private_key_is_read(text):
    assert read_key(text).hex() == SECRET


@pytest.mark.parametrize(
    "text",
    ["", "0x", SECRET[:-1], SECRET + "0", "z" + SECRET[1:], "0" * 64, "f" * 64],
)
def test_what_is_no_private_key_is_refused_and_not_repeated(text):
    with pytest.raises(ValueError, match="not a private key") as caught:
        read_key(text)
    assert len(text) < 10 or text not in str(caught.value)


def changed(**changes: object) -> str:
    return json.dumps({"crypto": {**CRYPTO, **changes}, "version": 3})


def costing(**changes: object) -> str:
    return changed(kdfparams={**CRYPTO["kdfparams"], **changes})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 10_000,
        " " * 20_000,
        json.dumps({"crypto": CRYPTO, "version": 4}),
        json.dumps({"crypto": CRYPTO, "version": "3"}),
        json.dumps({"crypto": "x", "version": 3}),
        changed(cipher="aes-256-ctr"),
        changed(cipherparams={"iv": "zz"}),
        changed(ciphertext="00"),
        changed(mac=5),
        changed(kdf="argon2"),
        changed(kdfparams=None),
        costing(n=2**40),
        costing(n=2**20, r=8, p=8),
        costing(n=3),
        costing(n=1),
        costing(n="262144"),
        costing(n=True),
        costing(p=0),
        costing(r=-1),
        costing(n=2, p=1025),
        costing(dklen=32.0),
        costing(dklen=2**30),
        costing(salt="zz"),
        costing(salt="00" * 1000),
        changed(
            kdf="pbkdf2", kdfparams={**PBKDF2["crypto"]["kdfparams"], "c": 10**9}
        ),
        changed(
            kdf="pbkdf2", kdfparams={**PBKDF2["crypto"]["kdfparams"], "prf": "hmac-md5"}
        ),
    ],
)  # fmt: skip
def test_keystores_that_are_none_or_cost_too_much_are_refused(text):
    with pytest.raises(ValueError, match="keystore"):
        read_keystore(text)


def test_derivations_are_limited_in_number(monkeypatch):
    monkeypatch.setattr(keys, "TURN_SECONDS", 0.05)
    outcomes: list[str] = []

    def work() -> None:
        try:
            decrypt(SCRYPT, "testpassword", owner=1)
            outcomes.append("opened")
        except TooBusy:
            outcomes.append("busy")

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("opened") >= keys.MAX_DERIVATIONS
    assert outcomes.count("busy") >= 1
    decrypt(encrypt(b"\1" * 32, "x", scrypt_n=2, owner=1), "x", owner=1)
