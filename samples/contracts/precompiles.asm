; Calls a precompiled contract and stores its output.
;
;   input      its address in 32 bytes, then its input
;   Storage    address  the first word of its output; all ones if the call failed
; Works from Frontier on.

        PUSH 0x20 CALLDATASIZE SUB                      ; [size]
        DUP1 PUSH 0x20 PUSH 0 CALLDATACOPY
        PUSH 0x20 CALLDATASIZE                          ; the output lies behind the input
        DUP3 PUSH 0 PUSH 0 PUSH 0 CALLDATALOAD          ; value 0
        PUSH 0x8000 GAS SUB CALL                        ; [size, success]
        PUSH @success JUMPI
        PUSH 0 NOT PUSH 0 CALLDATALOAD SSTORE STOP
success:
        CALLDATASIZE MLOAD PUSH 0 CALLDATALOAD SSTORE STOP
