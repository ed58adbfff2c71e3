; Stores the creator and the block number.

        CALLER PUSH 0 SSTORE
        NUMBER PUSH 1 SSTORE
