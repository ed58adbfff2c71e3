"""What dapps meet: the wallet's black-box cases, each a test that names its number.

All over real WebSockets, against a service of two processes. A user U has the accounts A1
(the primary one) and A2; the chains eip155:1, eip155:137 and eip155:1337 are served, and
no other. P is a dapp of U with the sockets S1 and S2, which two processes serve; Q is
another dapp of U, V another user. Cases that other tests are about carry their numbers
there; `test_numbers` looks whether one is missing.

Three cases name methods that this node does not serve (eth_call, eth_getBalance): they
are made with methods that it does serve, as what is tested is the wallet's part.
"""
