; Calls itself with every kind of call, down to a given depth.
;
;   descend(uint256 depth)     slot `depth` counts the call; then descend(depth − 1) is called:
;                              by CALL if depth mod 3 is 1, by CALLCODE if it is 2, by
;                              DELEGATECALL if it is 0; the value is passed on
;   inspect(address token) → uint256      STATICCALL of the token's balanceOf(this)
;   attempt(address target, bytes4 selector) → bool      CALL; its failure is ignored
;
; Each level keeps 0x4000 gas, as callers had to before EIP-150. Works from
; Frontier on, as far as the fork has DELEGATECALL (Homestead) and STATICCALL (Byzantium).

        PUSH 0x100000000000000000000000000000000000000000000000000000000
        PUSH 0 CALLDATALOAD DIV                         ; [selector]
        DUP1 PUSH4 selector("descend(uint256)") EQ PUSH @descend JUMPI
        DUP1 PUSH4 selector("inspect(address)") EQ PUSH @inspect JUMPI
        DUP1 PUSH4 selector("attempt(address,bytes4)") EQ PUSH @attempt JUMPI
        STOP

descend:
        PUSH 4 CALLDATALOAD                             ; [selector, depth]
        DUP1 SLOAD PUSH 1 ADD DUP2 SSTORE
        DUP1 PUSH @further JUMPI
        STOP
further:
        PUSH 0 CALLDATALOAD PUSH 0 MSTORE               ; the same function …
        PUSH 1 DUP2 SUB PUSH 4 MSTORE                   ; … of depth−1
        PUSH 3 SWAP1 MOD                                ; [selector, kind]
        DUP1 PUSH 1 EQ PUSH @by_call JUMPI
        DUP1 PUSH 2 EQ PUSH @by_callcode JUMPI
        PUSH 0 DUP1 PUSH 0x24 PUSH 0 ADDRESS PUSH 0x4000 GAS SUB DELEGATECALL
        STOP
by_call:
        PUSH 0 DUP1 PUSH 0x24 PUSH 0 CALLVALUE ADDRESS PUSH 0x4000 GAS SUB CALL
        STOP
by_callcode:
        PUSH 0 DUP1 PUSH 0x24 PUSH 0 CALLVALUE ADDRESS PUSH 0x4000 GAS SUB CALLCODE
        STOP

inspect:
        PUSH4 selector("balanceOf(address)") PUSH 0 MSTORE      ; from byte 28 on
        ADDRESS PUSH 0x20 MSTORE
        PUSH 0x20 PUSH 0 PUSH 0x24 PUSH 28 PUSH 4 CALLDATALOAD GAS STATICCALL
        POP PUSH 0x20 PUSH 0 RETURN

attempt:
        PUSH 0x24 CALLDATALOAD PUSH 0 MSTORE
        PUSH 0 DUP1 PUSH 4 PUSH 0 CALLVALUE PUSH 4 CALLDATALOAD
        PUSH 0x4000 GAS SUB CALL
        PUSH 0 MSTORE PUSH 0x20 PUSH 0 RETURN
