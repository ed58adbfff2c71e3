import { Contract, FetchRequest, JsonRpcProvider } from "ethers";
import { answerLines } from "./lines.mjs";

function body(text) {
  try {
    return [JSON.parse(text)].flat()[0]?.error;
  } catch {
    return undefined;
  }
}

// What is done with a contract; `path` is such as "balanceOf" or "transfer.estimateGas".
function actions(provider) {
  return {
    contract(address, abi, path, ...given) {
      const contract = new Contract(address, abi, provider);
      return path.split(".").reduce((found, name) => found[name], contract)(...given);
    },
    async queryFilter(address, abi, event, given, from, to) {
      const contract = new Contract(address, abi, provider);
      const filter = contract.filters[event](...given);
      const logs = await contract.queryFilter(filter, from, to);
      return logs.map(({ blockNumber, transactionHash, args }) => ({
        blockNumber,
        transactionHash,
        args: [...args],
      }));
    },
  };
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
    const provider = new JsonRpcProvider(request, 202611, { staticNetwork: true });
    return Object.assign(provider, actions(provider));
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
