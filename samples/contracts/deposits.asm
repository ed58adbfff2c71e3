; Emits the log of a validator's deposit like the deposit contract, without its Merkle tree.
;
;   input      public key 48 · withdrawal credentials 32 · amount 8 · signature 96 ·
;              index 8 bytes, amount (gwei) and index little-endian
;   Event      DepositEvent(bytes,bytes,bytes,bytes,bytes), 576 bytes in the one layout
;              that execution clients accept (EIP-6110)

        PUSH 160 PUSH 0 MSTORE PUSH 256 PUSH 32 MSTORE PUSH 320 PUSH 64 MSTORE
        PUSH 384 PUSH 96 MSTORE PUSH 512 PUSH 128 MSTORE
        PUSH 48 PUSH 160 MSTORE PUSH 48 PUSH 0 PUSH 192 CALLDATACOPY
        PUSH 32 PUSH 256 MSTORE PUSH 32 PUSH 48 PUSH 288 CALLDATACOPY
        PUSH 8 PUSH 320 MSTORE PUSH 8 PUSH 80 PUSH 352 CALLDATACOPY
        PUSH 96 PUSH 384 MSTORE PUSH 96 PUSH 88 PUSH 416 CALLDATACOPY
        PUSH 8 PUSH 512 MSTORE PUSH 8 PUSH 184 PUSH 544 CALLDATACOPY
        PUSH32 topic("DepositEvent(bytes,bytes,bytes,bytes,bytes)")
        PUSH 576 PUSH 0 LOG1 STOP
