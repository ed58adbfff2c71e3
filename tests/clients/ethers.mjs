import { FetchRequest, JsonRpcProvider } from "ethers";
import { answerLines } from "./lines.mjs";

function body(text) {
  try {
    return [JSON.parse(text)].flat()[0]?.error;
  } catch {
    return undefined;
  }
}

await answerLines({
  connect({ url, headers = {}, patient }) {
    const request = new FetchRequest(url);
    for (const [name, value] of Object.entries(headers)) request.setHeader(name, value);
    if (patient)
      request.retryFunc = async (_, response) => {
        const seconds = Number(response.headers["retry-after"]);
        await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
        return true;
      };
    // Without a static network it would ask for the chain's id first, once a second and
    // for ever when that is refused.
    return new JsonRpcProvider(request, 202611, { staticNetwork: true });
  },
  describe({ code: name, shortMessage, error, info, response }) {
    const said = error ?? info?.error ?? body(info?.responseBody);
    return {
      name,
      code: said?.code,
      message: said?.message ?? shortMessage,
      status: response?.statusCode,
    };
  },
  close: (provider) => provider.destroy(),
});
