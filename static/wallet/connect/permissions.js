// Permissions in the format of EIP-2255, with MetaMask's caveats.

function permissionsOf(accounts, scopes, date) {
  if (accounts.length === 0) return [];
  const common = { invoker: location.origin, date };
  const chains = Object.keys(scopes).filter((scope) => scope.startsWith(EIP155));
  return [
    {
      ...common,
      parentCapability: "eth_accounts",
      caveats: [{ type: "restrictReturnedAccounts", value: accounts }],
    },
    {
      ...common,
      parentCapability: "endowment:permitted-chains",
      caveats: [{ type: "restrictNetworkSwitching", value: chains.map(hexChainId) }],
    },
  ];
}

// Checks the parameter of wallet_requestPermissions and wallet_revokePermissions: an object whose
// members are the names of permissions.
function checkPermissions(params) {
  const names = Object.keys(params?.[0] ?? {});
  const served = ["eth_accounts", "endowment:permitted-chains"];
  if (names.length > 0 && names.every((name) => served.includes(name))) return;
  const fault = `expected an object with ${served.join(" or ")}`;
  throw new ProviderRpcError(invalidParams(`Invalid method parameter(s): ${fault}.`));
}
