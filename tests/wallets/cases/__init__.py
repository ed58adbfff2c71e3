"""The wallet's black-box cases for dapps. Each test names the number of its case.

All cases use real WebSockets to a service with two processes. A user U has the accounts A1
(the primary one) and A2; the chains eip155:1, eip155:137 and eip155:1337 are served, and
no other. P is a dapp of U with the sockets S1 and S2, which two processes serve; Q is
another dapp of U, V another user. Other tests that cover cases are marked with the numbers as well; `test_numbers` checks
that none is missing.

Three cases name methods that this node does not serve (eth_call, eth_getBalance): they use methods that it serves, because the wallet's part is tested.
"""
