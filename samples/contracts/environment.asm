; Stores the properties of the environment that the EVM reports, through London and the merge.
;
; Storage    1  chain id      2  own balance      3  base fee      4  difficulty or randao
;            5  gas limit     6  coinbase         7  timestamp     8  parent's hash
;            9  gas price    10  origin          11  code hash of the caller

        CHAINID PUSH 1 SSTORE
        SELFBALANCE PUSH 2 SSTORE
        BASEFEE PUSH 3 SSTORE
        PREVRANDAO PUSH 4 SSTORE
        GASLIMIT PUSH 5 SSTORE
        COINBASE PUSH 6 SSTORE
        TIMESTAMP PUSH 7 SSTORE
        PUSH 1 NUMBER SUB BLOCKHASH PUSH 8 SSTORE
        GASPRICE PUSH 9 SSTORE
        ORIGIN PUSH 10 SSTORE
        CALLER EXTCODEHASH PUSH 11 SSTORE
        STOP
