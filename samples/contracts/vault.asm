; Two variables and a mapping. Used directly, or as a proxy's logic contract.
;
;   set(uint256)      get() → uint256
;   put(uint256 key, uint256 value)      at(uint256 key) → uint256
;   close()           reverts: Error("the vault stays open")
;
; Storage    0  number      1  its last setter      2  mapping(uint256 → uint256)
; Payable. Works from Frontier on.

        PUSH 0x100000000000000000000000000000000000000000000000000000000
        PUSH 0 CALLDATALOAD DIV                         ; [selector]
        DUP1 PUSH4 selector("set(uint256)") EQ PUSH @set JUMPI
        DUP1 PUSH4 selector("get()") EQ PUSH @get JUMPI
        DUP1 PUSH4 selector("put(uint256,uint256)") EQ PUSH @put JUMPI
        DUP1 PUSH4 selector("at(uint256)") EQ PUSH @at JUMPI
        DUP1 PUSH4 selector("close()") EQ PUSH @close JUMPI
        STOP

set:    PUSH 4 CALLDATALOAD PUSH 0 SSTORE
        CALLER PUSH 1 SSTORE STOP

get:    PUSH 0 SLOAD PUSH @return_word JUMP

put:    PUSH 0x24 CALLDATALOAD PUSH @return_put PUSH @element JUMP
return_put:                                             ; [selector, value, slot]
        SSTORE STOP

at:     PUSH @return_at PUSH @element JUMP
return_at:                                              ; [selector, slot]
        SLOAD PUSH @return_word JUMP

element:                                                ; [return] → [slot]
        PUSH 4 CALLDATALOAD PUSH 0 MSTORE PUSH 2 PUSH 0x20 MSTORE
        PUSH 0x40 PUSH 0 SHA3 SWAP1 JUMP

return_word:
        PUSH 0 MSTORE PUSH 0x20 PUSH 0 RETURN

close:  PUSH4 selector("Error(string)") PUSH 0 MSTORE
        PUSH 0x20 PUSH 0x20 MSTORE
        PUSH 20 PUSH 0x40 MSTORE
        PUSH32 "the vault stays open" PUSH 0x60 MSTORE
        PUSH 0x64 PUSH 28 REVERT
