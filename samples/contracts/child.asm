; The factory's child: counts plain calls, and self-destructs in favour of a beneficiary.
;
;   no input            slot 2 counts the call; ether is welcome
;   a 32-byte address   SELFDESTRUCT in its favour
;
; Storage    0  the maker      1  the block of its making      2  count of calls

        CALLDATASIZE PUSH @destroy JUMPI
        PUSH 2 SLOAD PUSH 1 ADD PUSH 2 SSTORE STOP

destroy:
        PUSH 0 CALLDATALOAD SELFDESTRUCT
