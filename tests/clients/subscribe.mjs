// Subscribes to heads and to the logs of a contract, and prints the first of each:
// node subscribe.mjs viem|ethers URL ADDRESS
const [library, url, address] = process.argv.slice(2);
const print = (value) => console.log(JSON.stringify(value));
const fail = (error) => {
  console.error(error);
  process.exit(1);
};

if (library === "viem") {
  const { createPublicClient, webSocket } = await import("viem");
  const client = createPublicClient({ transport: webSocket(url) });
  const heads = await client.transport.subscribe({
    params: ["newHeads"],
    onData: ({ result }) => print(["block", Number(result.number)]),
    onError: fail,
  });
  const logs = await client.transport.subscribe({
    params: ["logs", { address }],
    onData: ({ result }) => print(["log", result.transactionHash]),
    onError: fail,
  });
  if (heads.subscriptionId && logs.subscriptionId) print("subscribed");
} else {
  const { WebSocketProvider } = await import("ethers");
  const provider = new WebSocketProvider(url, 7, { staticNetwork: true });
  await provider.on("block", (number) => print(["block", number]));
  await provider.on({ address }, (log) => print(["log", log.transactionHash]));
  // ethers subscribes in the background, and asks in the order of the calls.
  await provider.send("eth_chainId", []);
  print("subscribed");
}
