"""Area B: a hosted multichain wallet and the sessions that dapps hold with it."""
