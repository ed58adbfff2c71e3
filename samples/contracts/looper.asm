; Uses gas: hashes a word repeatedly.
;
;   input      number of rounds, 32 bytes; a round costs about 70 gas
;   Storage    0  the last hash

        PUSH 0 CALLDATALOAD                             ; [rounds]
loop:   DUP1 ISZERO PUSH @done JUMPI
        PUSH 0x20 PUSH 0 SHA3 PUSH 0 MSTORE
        PUSH 1 SWAP1 SUB PUSH @loop JUMP
done:   PUSH 0 MLOAD PUSH 0 SSTORE STOP
