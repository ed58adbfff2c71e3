; Writes storage in all ways that stored histories have to handle.
;
;   set(uint256 slot, uint256 value)
;   restore(uint256 slot, uint256 value)     writes the value, then the previous one
;   fill(uint256 first, uint256 count)       slot n becomes n + 1
;   clear(uint256 first, uint256 count)      each slot becomes zero
;   transient(uint256 slot, uint256 value)   TSTORE, then SSTORE of the result of TLOAD
;
; Works from Frontier on, transient() from Cancun.

        PUSH 0x100000000000000000000000000000000000000000000000000000000
        PUSH 0 CALLDATALOAD DIV                         ; [selector]
        PUSH 0x24 CALLDATALOAD PUSH 4 CALLDATALOAD      ; [selector, second, first]
        DUP3 PUSH4 selector("set(uint256,uint256)") EQ PUSH @set JUMPI
        DUP3 PUSH4 selector("restore(uint256,uint256)") EQ PUSH @restore JUMPI
        DUP3 PUSH4 selector("fill(uint256,uint256)") EQ PUSH @fill JUMPI
        DUP3 PUSH4 selector("clear(uint256,uint256)") EQ PUSH @clear JUMPI
        DUP3 PUSH4 selector("transient(uint256,uint256)") EQ PUSH @transient JUMPI
        STOP

set:    SSTORE STOP

restore:                                                ; [selector, value, slot]
        DUP1 SLOAD SWAP2 DUP2 SSTORE                    ; [selector, old, slot]
        SSTORE STOP

fill:   DUP2 ISZERO PUSH @stop JUMPI                    ; [selector, count, slot]
        PUSH 1 DUP2 ADD DUP1 DUP3 SSTORE                ; [selector, count, slot, slot + 1]
        SWAP1 POP                                       ; [selector, count, slot + 1]
        SWAP1 PUSH 1 SWAP1 SUB SWAP1                    ; [selector, count − 1, slot + 1]
        PUSH @fill JUMP

clear:  DUP2 ISZERO PUSH @stop JUMPI
        PUSH 0 DUP2 SSTORE
        PUSH 1 ADD SWAP1 PUSH 1 SWAP1 SUB SWAP1
        PUSH @clear JUMP

stop:   STOP

transient:                                              ; [selector, value, slot]
        SWAP1 DUP2 TSTORE                               ; [selector, slot]
        DUP1 TLOAD SWAP1 SSTORE STOP
