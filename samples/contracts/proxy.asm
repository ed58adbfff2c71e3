; A transparent proxy: runs the code of another contract on its own storage.
;
; Storage    the logic contract's address, in the slot of EIP-1967
; Works from Byzantium on (RETURNDATACOPY).

        CALLDATASIZE PUSH 0 DUP1 CALLDATACOPY
        PUSH 0 DUP1 CALLDATASIZE PUSH 0                 ; output none, input everything
        PUSH32 0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc SLOAD
        GAS DELEGATECALL                                ; [success]
        RETURNDATASIZE PUSH 0 DUP1 RETURNDATACOPY
        RETURNDATASIZE PUSH 0 DUP3 PUSH @success JUMPI  ; [success, size, 0]
        REVERT
success:
        RETURN
