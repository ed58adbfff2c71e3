; Notes who made the child, and when.

        CALLER PUSH 0 SSTORE
        NUMBER PUSH 1 SSTORE
