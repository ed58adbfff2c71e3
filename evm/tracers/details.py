"""The `details` of trace records: data for tracers other than the two stored as JSON.

They contain the logs of the call frames, the changes of each touched account, the
touched accounts that were empty, and the fork, which determines the precompiled
contracts. Numbers are encoded as LEB128, as in protocol buffers. Words are encoded as a
length and big-endian bytes without leading zeros. Call frames are numbered in the order
in which they began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from eth_typing import Hash32

from evm.addresses import SYSTEM_ADDRESS
from evm.tracers.frames import CallFrame, FrameLog
from evm.tracers.touched import EMPTY, Slot, TouchedAccount
from evm.world import Account

_INTRODUCED: dict[str, Iterable[int]] = {
    "frontier": range(0x01, 0x05),
    "homestead": (),
    "tangerine_whistle": (),
    "spurious_dragon": (),
    "byzantium": range(0x05, 0x09),
    "constantinople": (),
    "petersburg": (),
    "istanbul": (0x09,),
    "muir_glacier": (),
    "berlin": (),
    "london": (),
    "arrow_glacier": (),
    "gray_glacier": (),
    "paris": (),
    "shanghai": (),
    "cancun": (0x0A,),
    "prague": range(0x0B, 0x12),
    "osaka": (0x100,),
    "amsterdam": (),
}
"""Forks in order, and the contracts that each introduced.

Source: EIP-198, 196, 197, 152, 4844, 2537, 7951"""

FORK_NAMES = tuple(_INTRODUCED)


@lru_cache
def precompile_addresses(fork_name: str) -> frozenset[bytes]:
    """Return the addresses, 20 bytes each, of a fork of `FORK_NAMES`."""
    until = FORK_NAMES[: FORK_NAMES.index(fork_name) + 1]
    numbers = [number for name in until for number in _INTRODUCED[name]]
    return frozenset(number.to_bytes(20, "big") for number in numbers)


_NUMBERS = {name: number for number, name in enumerate(FORK_NAMES)}
"""Fork → number in stored details. New forks are appended."""

_BALANCE, _NONCE, _CODE, _DESTROYED, _WAS_EMPTY, _SLOTS = 1, 2, 4, 8, 16, 32
_PROTOCOL_LOG = 8
"""Added to the number of topics if the log is no contract's (EIP-7708)."""
_UNCHANGED = 0xFF
"""Marks an unchanged slot, in place of the length of its new value."""


class Damaged(ValueError):
    """Raised when details are malformed."""


def encode_logs(fork_name: str, top: CallFrame | None) -> bytearray:
    """Return the beginning of a transaction's details: the fork and the logs.

    top: the outermost call frame, or None if the record was too large.

    The caller appends the touched accounts with `encode_account`, sorted by address.
    """
    # A blob-parameter-only fork has Osaka's contracts.
    out = bytearray((_NUMBERS.get(fork_name, _NUMBERS["osaka"]),))
    logs = [] if top is None else standing_logs(top)
    _number(out, len(logs))
    if logs:
        # Frames are in the order of their beginning, logs in the order of emission.
        first = logs[0][1].index
        if len(logs) > 1:
            first = min([log.index for _, log in logs])
        _number(out, first)
        for number, log in logs:
            _log(out, number, log, first)
    return out


def standing_logs(top: CallFrame) -> list[tuple[int, FrameLog]]:
    """Return the logs that were not reverted, with their call frames' numbers."""
    if not top.calls:
        return [] if top.error is not None else [(0, log) for log in top.logs]
    return [
        (number, log)
        for number, (frame, is_void) in enumerate(_frames(top))
        if frame.logs and not is_void
        for log in frame.logs
    ]


def _frames(top: CallFrame) -> Iterator[tuple[CallFrame, bool]]:
    """Yield the call frames in the order of their beginning.

    The second item of each pair says whether the frame was reverted.
    """
    waiting = [(top, False)]
    while waiting:
        frame, is_void = waiting.pop()
        is_void = is_void or frame.error is not None
        yield frame, is_void
        if frame.calls:
            waiting.extend([(call, is_void) for call in reversed(frame.calls)])


# Encoding


def _number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _word(out: bytearray, value: int) -> None:
    size = (value.bit_length() + 7) >> 3
    out.append(size)
    out += value.to_bytes(size, "big")


def _log(out: bytearray, number: int, log: FrameLog, first: int) -> None:
    position, index, topics, data = (
        log.position,
        log.index - first,
        log.topics,
        log.data,
    )
    kind = len(topics)
    if log.address == SYSTEM_ADDRESS:
        kind += _PROTOCOL_LOG
    if number < 0x80 and position < 0x80 and index < 0x80:
        out += bytes((number, position, index, kind))
    else:
        for value in (number, position, index, kind):
            _number(out, value)
    for topic in topics:
        word = topic.lstrip(b"\x00")
        out.append(len(word))
        out += word
    # Most logs have one word of data, and mostly a small number.
    if len(data) == 32:
        word = data.lstrip(b"\x00")
        out += bytes((1, len(word)))
        out += word
    else:
        _number(out, len(data) * 2)
        out += data


def encode_account(
    out: bytearray,
    address: bytes,
    before: Account,
    after: Account,
    slots: Collection[Slot],
    is_destroyed: bool,
) -> bool:
    """Append an account's changes. Return whether the account was empty before.

    The slots of a non-empty account are part of the JSON. Their changes are appended
    separately with `encode_value`.
    """
    flags = _SLOTS if slots else 0
    if is_destroyed:
        flags |= _DESTROYED
    was_empty = before == EMPTY
    if before is after and not was_empty:
        out.append(flags)
        return False
    place = len(out)
    out.append(flags)
    if was_empty:
        flags |= _WAS_EMPTY
        out += address
    old_nonce, old_balance, old_code_hash = before
    nonce, balance, code_hash = after
    if balance != old_balance:
        flags |= _BALANCE
        _word(out, balance)
    if nonce != old_nonce:
        flags |= _NONCE
        _number(out, nonce)
    if code_hash != old_code_hash:
        flags |= _CODE
        out += code_hash
    out[place] = flags
    if was_empty and slots:
        _slots(out, slots)
    return was_empty


def _slots(out: bytearray, slots: Collection[Slot]) -> None:
    _number(out, len(slots))
    for slot, _, _ in slots:
        _word(out, slot)
    for _, old, new in slots:
        encode_value(out, old, new)


def encode_value(out: bytearray, old: int, new: int) -> None:
    """Append the change of a slot's value."""
    if old == new:
        out.append(_UNCHANGED)
    else:
        _word(out, new)


# Decoding


class Details:
    """Reader of a transaction's details. Its parts have to be read in order."""

    def __init__(self, encoded: bytes) -> None:
        """Read the fork. Raises: Damaged, as all methods do."""
        self._bytes = encoded
        self._position = 0
        number = self._take(1)[0]
        if number >= len(FORK_NAMES):
            raise Damaged(f"there is no fork {number}")
        self.fork_name = FORK_NAMES[number]

    @property
    def precompiles(self) -> frozenset[bytes]:
        """The addresses of the fork's precompiled contracts."""
        return precompile_addresses(self.fork_name)

    def add_logs(self, top: CallFrame | None) -> None:
        """Add the logs to the call frames of a tree. Without a tree, skip the logs."""
        count = self._number()
        first = self._number() if count else 0
        frames = [] if top is None else [frame for frame, _ in _frames(top)]
        executing = _executing(frames)
        for _ in range(count):
            number, position, index, kind = (self._number() for _ in range(4))
            topics = tuple(
                [self._word().to_bytes(32, "big") for _ in range(kind % _PROTOCOL_LOG)]
            )
            size = self._number()
            data = (
                self._word().to_bytes(32, "big") if size == 1 else self._take(size // 2)
            )
            if top is None:
                continue
            if number >= len(frames):
                raise Damaged(f"there is no frame {number}")
            address = executing[number] if kind < _PROTOCOL_LOG else SYSTEM_ADDRESS
            log = FrameLog(address, topics, data, first + index, position)
            frames[number].add_log(log)

    def complete(self, known: Iterable[TouchedAccount]) -> list[TouchedAccount]:
        """Return all touched accounts. Has to be called after `add_logs`.

        known: the accounts that were not empty, with their state before the
            transaction, sorted by address.
        """
        waiting = iter(known)
        touched = []
        while self._position < len(self._bytes):
            flags = self._take(1)[0]
            if flags & _WAS_EMPTY:
                account = TouchedAccount(self._take(20), EMPTY, EMPTY)
            else:
                following = next(waiting, None)
                if following is None:
                    raise Damaged("there are more accounts than in the answer")
                account = following
            self._complete(account, flags)
            touched.append(account)
        if next(waiting, None) is not None:
            raise Damaged("there are fewer accounts than in the answer")
        return touched

    def _complete(self, account: TouchedAccount, flags: int) -> None:
        nonce, balance, code_hash = account.before
        if flags & _BALANCE:
            balance = self._word()
        if flags & _NONCE:
            nonce = self._number()
        if flags & _CODE:
            code_hash = Hash32(self._take(32))
        account.after = Account(nonce, balance, code_hash)
        account.is_destroyed = bool(flags & _DESTROYED)
        if not flags & _SLOTS:
            return
        slots = [(slot, old) for slot, old, _ in account.slots]
        if flags & _WAS_EMPTY:
            slots = [(self._word(), 0) for _ in range(self._number())]
        account.slots = [(slot, old, self._slot_value(old)) for slot, old in slots]

    def _slot_value(self, old: int) -> int:
        if self._bytes[self._position : self._position + 1] == b"\xff":
            self._position += 1
            return old
        return self._word()

    def _take(self, size: int) -> bytes:
        start = self._position
        self._position = end = start + size
        if end > len(self._bytes):
            raise Damaged("the details end too soon")
        return self._bytes[start:end]

    def _number(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _word(self) -> int:
        return int.from_bytes(self._take(self._take(1)[0]), "big")


def _executing(frames: list[CallFrame]) -> list[bytes]:
    """Return the account that each call frame executes for.

    The frame uses this account's storage, and its logs name it.
    """
    return [
        frame.sender
        if frame.type in ("CALLCODE", "DELEGATECALL") or frame.to is None
        else frame.to
        for frame in frames
    ]
