; A wallet for batches of payments, to which accounts delegate (EIP-7702).
;
;   input      pairs of 32-byte words: address, wei; failed payments are skipped
;   Storage    0  number of batches

        PUSH 0                                          ; [position]
loop:   CALLDATASIZE DUP2 LT ISZERO PUSH @done JUMPI
        PUSH 0 DUP1 DUP1 DUP1
        DUP5 PUSH 0x20 ADD CALLDATALOAD                 ; wei
        DUP6 CALLDATALOAD GAS CALL POP                  ; [position]
        PUSH 0x40 ADD PUSH @loop JUMP
done:   PUSH 0 SLOAD PUSH 1 ADD PUSH 0 SSTORE STOP
