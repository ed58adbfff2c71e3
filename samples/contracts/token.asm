; A token with ERC-20's balances and the storage layout of Solidity.
;
;   totalSupply() → uint256            balanceOf(address) → uint256
;   decimals() → uint256               transfer(address,uint256) → bool
;
; Storage    0  mapping(address → uint256) balances      1  total supply
; Event      Transfer(address indexed from, address indexed to, uint256 value)
; Reverts    Error("insufficient balance"); without output for invalid calls
; Works from Frontier on: the selector is computed by DIV, because SHR is newer. Before
; Byzantium, REVERT fails as an undefined opcode.

        PUSH 0x80 PUSH 0x40 MSTORE                      ; Solidity's free memory pointer
        CALLVALUE PUSH @refuse JUMPI                    ; no function is payable
        PUSH 4 CALLDATASIZE LT PUSH @refuse JUMPI
        PUSH 0x100000000000000000000000000000000000000000000000000000000
        PUSH 0 CALLDATALOAD DIV                         ; [selector]
        DUP1 PUSH4 selector("totalSupply()") EQ PUSH @totalSupply JUMPI
        DUP1 PUSH4 selector("decimals()") EQ PUSH @decimals JUMPI
        DUP1 PUSH4 selector("balanceOf(address)") EQ PUSH @balanceOf JUMPI
        DUP1 PUSH4 selector("transfer(address,uint256)") EQ PUSH @transfer JUMPI

refuse: PUSH 0 DUP1 REVERT

totalSupply:
        PUSH 1 SLOAD PUSH @return_word JUMP

decimals:
        PUSH 18 PUSH @return_word JUMP

balanceOf:
        PUSH 4 CALLDATALOAD PUSH 0xffffffffffffffffffffffffffffffffffffffff AND
        PUSH 0 MSTORE PUSH 0 PUSH 0x20 MSTORE           ; key, then the mapping's position
        PUSH 0x40 PUSH 0 SHA3 SLOAD PUSH @return_word JUMP

transfer:
        PUSH 0x44 CALLDATASIZE LT PUSH @refuse JUMPI
        PUSH 4 CALLDATALOAD
        PUSH 0xffffffffffffffffffffffffffffffffffffffff AND     ; [selector, to]
        PUSH 0x24 CALLDATALOAD                                  ; [selector, to, amount]
        CALLER PUSH 0 MSTORE PUSH 0 PUSH 0x20 MSTORE
        PUSH 0x40 PUSH 0 SHA3 DUP1 SLOAD                ; [.., to, amount, slot, balance]
        DUP3 DUP2 LT PUSH @insufficient JUMPI
        DUP3 SWAP1 SUB SWAP1 SSTORE                     ; [.., to, amount]
        DUP2 PUSH 0 MSTORE PUSH 0x40 PUSH 0 SHA3        ; [.., to, amount, slot]
        DUP1 SLOAD DUP3 ADD                             ; [.., to, amount, slot, balance]
        DUP3 DUP2 LT PUSH @overflow JUMPI
        SWAP1 SSTORE                                    ; [.., to, amount]
        PUSH 0x40 MLOAD SWAP1 DUP2 MSTORE               ; [.., to, pointer]
        CALLER SWAP1                                    ; [.., to, from, pointer]
        PUSH32 topic("Transfer(address,address,uint256)") SWAP1
        PUSH 0x20 SWAP1 LOG3                            ; [selector]
        PUSH 1 PUSH @return_word JUMP

return_word:                                            ; [.., word]
        PUSH 0x40 MLOAD SWAP1 DUP2 MSTORE
        PUSH 0x20 SWAP1 RETURN

insufficient:
        PUSH4 selector("Error(string)") PUSH 0 MSTORE   ; right-aligned: begins at byte 28
        PUSH 0x20 PUSH 0x20 MSTORE
        PUSH 20 PUSH 0x40 MSTORE
        PUSH32 "insufficient balance" PUSH 0x60 MSTORE
        PUSH 0x64 PUSH 28 REVERT

overflow:
        PUSH4 selector("Panic(uint256)") PUSH 0 MSTORE
        PUSH 0x11 PUSH 0x20 MSTORE                      ; arithmetic overflow
        PUSH 0x24 PUSH 28 REVERT
