; Mints the supply, a 32-byte argument, to the deployer.

        PUSH #arguments PUSH @arguments PUSH 0 CODECOPY
        PUSH 0 MLOAD                                    ; [supply]
        DUP1 PUSH 1 SSTORE
        CALLER PUSH 0 MSTORE PUSH 0 PUSH 0x20 MSTORE
        DUP1 PUSH 0x40 PUSH 0 SHA3 SSTORE               ; balances[deployer]
        PUSH 0 MSTORE
        CALLER PUSH 0 PUSH32 topic("Transfer(address,address,uint256)")
        PUSH 0x20 PUSH 0 LOG3
