; Every kind of failure that tracers report.
;
;   reason()         Error("no reason at all")      panic()    Panic(0x11)
;   custom()         NotAllowed(address caller)     bare()     REVERT without output
;   invalid()        INVALID                        badJump()  JUMP to no JUMPDEST
;   underflow()      POP of an empty stack          overflow() the 1025th stack item
;   outOfGas()       an endless loop             beyond()   RETURNDATACOPY past the end
;   staticWrite()    SSTORE in a STATICCALL; its failure is ignored
;   nested()         writes 0, calls writeAndRevert(), ignores its failure, writes 2
;   writeAndRevert() writes 1 and a log, calls write(), reverts with a reason
;   write()          writes 5
;
; Storage    0, 1, 2, 5 as above; after nested(), 1 and 5 must be zero
; Works from Byzantium on.

        PUSH 0x100000000000000000000000000000000000000000000000000000000
        PUSH 0 CALLDATALOAD DIV                         ; [selector]
        DUP1 PUSH4 selector("reason()") EQ PUSH @reason JUMPI
        DUP1 PUSH4 selector("panic()") EQ PUSH @panic JUMPI
        DUP1 PUSH4 selector("custom()") EQ PUSH @custom JUMPI
        DUP1 PUSH4 selector("bare()") EQ PUSH @bare JUMPI
        DUP1 PUSH4 selector("invalid()") EQ PUSH @invalid JUMPI
        DUP1 PUSH4 selector("badJump()") EQ PUSH @badJump JUMPI
        DUP1 PUSH4 selector("underflow()") EQ PUSH @underflow JUMPI
        DUP1 PUSH4 selector("overflow()") EQ PUSH @overflow JUMPI
        DUP1 PUSH4 selector("outOfGas()") EQ PUSH @outOfGas JUMPI
        DUP1 PUSH4 selector("beyond()") EQ PUSH @beyond JUMPI
        DUP1 PUSH4 selector("staticWrite()") EQ PUSH @staticWrite JUMPI
        DUP1 PUSH4 selector("nested()") EQ PUSH @nested JUMPI
        DUP1 PUSH4 selector("writeAndRevert()") EQ PUSH @writeAndRevert JUMPI
        DUP1 PUSH4 selector("write()") EQ PUSH @write JUMPI
bare:   PUSH 0 DUP1 REVERT

reason: PUSH4 selector("Error(string)") PUSH 0 MSTORE
        PUSH 0x20 PUSH 0x20 MSTORE
        PUSH 16 PUSH 0x40 MSTORE
        PUSH32 "no reason at all" PUSH 0x60 MSTORE
        PUSH 0x64 PUSH 28 REVERT

panic:  PUSH4 selector("Panic(uint256)") PUSH 0 MSTORE
        PUSH 0x11 PUSH 0x20 MSTORE
        PUSH 0x24 PUSH 28 REVERT

custom: PUSH4 selector("NotAllowed(address)") PUSH 0 MSTORE
        CALLER PUSH 0x20 MSTORE
        PUSH 0x24 PUSH 28 REVERT

invalid:
        INVALID

badJump:
        PUSH 0xffff JUMP

underflow:
        POP POP STOP

overflow:
        PC PUSH @overflow JUMP

outOfGas:
        PUSH @outOfGas JUMP

beyond: PUSH 0x20 PUSH 0 PUSH 0 RETURNDATACOPY STOP

staticWrite:
        PUSH4 selector("write()") PUSH 0 MSTORE
        PUSH 0 DUP1 PUSH 4 PUSH 28 ADDRESS PUSH 0x8000 STATICCALL STOP

nested: PUSH 1 PUSH 0 SSTORE
        PUSH4 selector("writeAndRevert()") PUSH 0 MSTORE
        PUSH 0 DUP1 PUSH 4 PUSH 28 PUSH 0 ADDRESS GAS CALL      ; [selector, 0]
        ISZERO PUSH 2 SSTORE STOP

writeAndRevert:
        PUSH 7 PUSH 1 SSTORE
        PUSH 0 DUP1 LOG0
        PUSH4 selector("write()") PUSH 0 MSTORE
        PUSH 0 DUP1 PUSH 4 PUSH 28 PUSH 0 ADDRESS GAS CALL
        PUSH @reason JUMP

write:  PUSH 5 DUP1 SSTORE STOP
