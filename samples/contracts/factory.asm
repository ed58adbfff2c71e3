; Creates children with CREATE and CREATE2, and gives them the ether of the call.
;
;   create() → address                                    CREATE
;   create2(uint256 salt) → address                       CREATE2
;   createTwice(uint256 salt) → address                   the second one collides: returns zero
;   createAndDestroy(uint256 salt, address beneficiary) → address
;   createFailing() → address                             the init code reverts: returns zero
;   destroy(address child, address beneficiary)
;
; Storage    0  the newest child      1  number of creations
; create() works from Frontier on, destroy() from EIP-150 on, the others from Constantinople on.

        PUSH 0x100000000000000000000000000000000000000000000000000000000
        PUSH 0 CALLDATALOAD DIV                         ; [selector]
        DUP1 PUSH4 selector("create()") EQ PUSH @create JUMPI
        DUP1 PUSH4 selector("create2(uint256)") EQ PUSH @create2 JUMPI
        DUP1 PUSH4 selector("createTwice(uint256)") EQ PUSH @createTwice JUMPI
        DUP1 PUSH4 selector("createAndDestroy(uint256,address)") EQ
        PUSH @createAndDestroy JUMPI
        DUP1 PUSH4 selector("createFailing()") EQ PUSH @createFailing JUMPI
        DUP1 PUSH4 selector("destroy(address,address)") EQ PUSH @destroy JUMPI
        STOP                                            ; plain transfers are accepted

create: PUSH #child DUP1 PUSH @child PUSH 0 CODECOPY    ; [selector, size]
        PUSH 0 CALLVALUE CREATE                         ; [selector, address]
        PUSH @record JUMP

create2:
        PUSH @record PUSH @make JUMP

createTwice:
        PUSH @second PUSH @make JUMP
second: POP PUSH @record PUSH @make JUMP

createAndDestroy:
        PUSH @made PUSH @make JUMP
made:   PUSH 0x24 CALLDATALOAD PUSH 0 MSTORE            ; [selector, address]
        PUSH @record DUP2 PUSH @end JUMP

createFailing:
        PUSH #failing DUP1 PUSH @failing PUSH 0 CODECOPY
        PUSH 0 CALLVALUE CREATE
        PUSH @record JUMP

destroy:
        PUSH 0x24 CALLDATALOAD PUSH 0 MSTORE
        PUSH @stop PUSH 4 CALLDATALOAD PUSH @end JUMP
stop:   STOP

make:                                                   ; [return] → [address]
        PUSH 4 CALLDATALOAD                             ; [return, salt]
        PUSH #child DUP1 PUSH @child PUSH 0 CODECOPY    ; [return, salt, size]
        PUSH 0 CALLVALUE CREATE2                        ; [return, address]
        SWAP1 JUMP

end:                                                    ; [return, child] → []
        PUSH 0 DUP1 PUSH 0x20 PUSH 0 PUSH 0             ; the beneficiary is at 0
        DUP6 GAS CALL                                   ; [return, child, success]
        POP POP JUMP

record:                                                 ; [selector, address]
        DUP1 PUSH 0 SSTORE
        PUSH 1 SLOAD PUSH 1 ADD PUSH 1 SSTORE
        PUSH 0 MSTORE PUSH 0x20 PUSH 0 RETURN

.data child                                             ; init code
.data failing                                           ; init code
