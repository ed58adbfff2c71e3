// A client that is controlled by lines of JSON.
//
// in: { url, headers, batch, actions: [[name, ...arguments], …] }; the actions run at once
// out: [{ result } or { error }, …] in their order
// A bigint is written as "12n", in both directions.
import { createInterface } from "node:readline";

function revive(_, value) {
  return /^\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value;
}

function replace(_, value) {
  return typeof value === "bigint" ? `${value}n` : value;
}

// connect(order) gives the client, with a method for each action, describe(error) what is
// told of an error, close(client) ends it.
export async function answerLines({ connect, describe, close = () => {} }) {
  for await (const line of createInterface({ input: process.stdin })) {
    const order = JSON.parse(line, revive);
    const client = connect(order);
    const done = await Promise.allSettled(
      order.actions.map(async ([name, ...given]) => client[name](...given)),
    );
    close(client);
    const answers = done.map(({ status, value = null, reason }) =>
      status === "fulfilled" ? { result: value } : { error: describe(reason) },
    );
    process.stdout.write(`${JSON.stringify(answers, replace)}\n`);
  }
}
