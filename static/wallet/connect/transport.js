// The transport for getMultichainClient({ transport }) of @metamask/multichain-api-client.

function multichainTransport(api) {
  const client = {};
  let isConnected = false;
  let lastId = 0;

  function lateness() {
    const error = new Error("The wallet has not answered in time.");
    error.name = "TransportTimeoutError";
    return error;
  }

  return {
    warmupTimeout: 1000,
    connect: async () => {
      isConnected = true;
    },
    disconnect: async () => {
      isConnected = false;
    },
    isConnected: () => isConnected,
    onNotification: (listener) => api.listen(client, listener),
    async request({ method, params }, { timeout = -1 } = {}) {
      const answered = api.call(client, method, params);
      const id = ++lastId;
      if (timeout < 0) return { jsonrpc: "2.0", id, ...(await answered) };
      let timer;
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(lateness()), timeout);
      });
      const answer = await Promise.race([answered, late]);
      clearTimeout(timer);
      return { jsonrpc: "2.0", id, ...answer };
    },
  };
}
