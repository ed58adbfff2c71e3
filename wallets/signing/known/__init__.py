"""Descriptions of well-known kinds of typed data: which address gets which permission.

`recognize` compares the encoded type and the domain with those of the kinds in this
package. Only exact matches are described, so that a look-alike is shown as unknown data.
The sentences are made from the values that are signed, and from nothing else a dapp says.
Names of tokens come from the tokens' contracts, and are marked as such.

`phrases` has the words, `layouts` the comparison; the other modules have one family of
types each.
"""
