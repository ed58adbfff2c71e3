; Stores the logic contract's address, a 32-byte argument.

        PUSH #arguments PUSH @arguments PUSH 0 CODECOPY
        PUSH 0 MLOAD
        PUSH32 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc SSTORE
