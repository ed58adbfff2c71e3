; The factory's child. Counts plain calls, and self-destructs in favour of a beneficiary.
;
;   no input            slot 2 counts the call; payable
;   a 32-byte address   SELFDESTRUCT in its favour
;
; Storage    0  the creator    1  the block of its creation    2  number of calls

        CALLDATASIZE PUSH @destroy JUMPI
        PUSH 2 SLOAD PUSH 1 ADD PUSH 2 SSTORE STOP

destroy:
        PUSH 0 CALLDATALOAD SELFDESTRUCT
