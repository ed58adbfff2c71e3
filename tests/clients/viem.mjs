import { createPublicClient, http } from "viem";
import { answerLines } from "./lines.mjs";

await answerLines({
  connect({ url, headers, batch }) {
    const transport = http(url, { batch, fetchOptions: { headers } });
    return createPublicClient({ transport });
  },
  describe(error) {
    // The layer below knows the status; `details` is what the server said.
    const answered = error.walk?.((each) => each.status !== undefined);
    const { name, code, details, message } = error;
    return { name, code, message: details ?? message, status: answered?.status };
  },
});
