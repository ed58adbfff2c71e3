; Stores the blob hashes and the blob base fee that the EVM reports (Cancun).
;
; Storage    0  hash of the first blob      1  hash of the seventh (zero)
;            2  blob base fee, wei

        PUSH0 BLOBHASH PUSH0 SSTORE
        PUSH 6 BLOBHASH PUSH 1 SSTORE
        BLOBBASEFEE PUSH 2 SSTORE
        STOP
