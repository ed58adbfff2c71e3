"""The zstd dictionary of trace records.

Stored records refer to this dictionary, so its text must never change. An improved
dictionary has to be added as a second one.
"""

from __future__ import annotations

_ZEROS = b"0" * 64

DICTIONARY: bytes = b"".join(
    [
        # Topics of ERC-20's events, and parts of revert reasons.
        bytes.fromhex(
            "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"
            "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
        ),
        b',"output":"0x08c379a0',
        _ZEROS,
        b',"error":"execution reverted","revertReason":"',
        b',"error":"out of gas"',
        b',"calls":[{"from":"0x',
        b'","gas":"0x","gasUsed":"0x","to":"0x","input":"0x',
        b'","type":"SELFDESTRUCT"},{"from":"0x',
        b'","value":"0x0","type":"CREATE2"},{"from":"0x',
        b'","type":"STATICCALL"},{"from":"0x',
        b'","value":"0x0","type":"DELEGATECALL"}]',
        b',"value":"0x0","type":"CALL"}]',
        b'{\x01"gasUsed":"0x","to":"0x",\x03,\x04,"type":"CREATE"}',
        b'{\x01"gasUsed":"0x5208",\x02,\x04,"type":"CALL"}',
        b'{\x01"gasUsed":"0x',
        b'",\x02,"output":"0x' + _ZEROS[:63] + b'1"',
        b',\x04,"type":"CALL"}',
        b'{"0x0000000000000000000000000000000000000000":{"balance":"0x0","nonce":1},',
        b'"},"0x","nonce":2},"0x","nonce":',
        b'":{"balance":"0x0","code":"0x\x05","codeHash":"0x',
        b'","nonce":1,"storage":{"0x',
        b'":"0x' + _ZEROS + b'","0x',
        b'":"0x' + _ZEROS,
        b'"}},"0x',
    ]
)
