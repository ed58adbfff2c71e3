// Watches blocks and transfers as viem does over HTTP, and prints them:
// node watch.mjs URL TOKEN
import { createPublicClient, http, parseAbiItem } from "viem";

const [url, address] = process.argv.slice(2);
const print = (value) => console.log(JSON.stringify(value));
const onError = (error) => {
  console.error(error);
  process.exit(1);
};

const client = createPublicClient({ transport: http(url), pollingInterval: 50 });
const event = parseAbiItem(
  "event Transfer(address indexed from, address indexed to, uint256 value)",
);
client.watchEvent({
  address,
  event,
  onError,
  onLogs: (logs) => logs.forEach(({ args }) => print(["transfer", Number(args.value)])),
});
client.watchBlocks({
  emitMissed: true,
  emitOnBegin: true,
  onError,
  onBlock: ({ number }) => print(["block", Number(number)]),
});
