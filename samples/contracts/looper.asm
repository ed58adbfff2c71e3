; Burns gas: hashes a word over and over.
;
;   input      a 32-byte count of rounds, about 70 gas each
;   Storage    0  the last hash

        PUSH 0 CALLDATALOAD                             ; [rounds]
loop:   DUP1 ISZERO PUSH @done JUMPI
        PUSH 0x20 PUSH 0 SHA3 PUSH 0 MSTORE
        PUSH 1 SWAP1 SUB PUSH @loop JUMP
done:   PUSH 0 MLOAD PUSH 0 SSTORE STOP
