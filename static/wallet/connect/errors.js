// Error objects of JSON-RPC responses, and the error that EIP-1193 providers reject with.
//
// Source: EIP-1193, EIP-1474; the messages are those of MetaMask's rpc-errors.

const REJECTED = { code: 4001, message: "User rejected the request." };
const UNAUTHORIZED = {
  code: 4100,
  message: "The requested account and/or method has not been authorized by the user.",
};
const UNREACHABLE = { code: 4900, message: "The wallet can't be reached." };
const ALREADY_PENDING = -32002;

function noSuchMethod(method) {
  const message = "The method does not exist / is not available.";
  return { code: -32601, message, data: { method: String(method).slice(0, 128) } };
}

function invalidRequest(message) {
  return { code: -32600, message };
}

function invalidParams(message) {
  return { code: -32602, message };
}

class ProviderRpcError extends Error {
  constructor({ code, message, data }) {
    super(message);
    this.name = "ProviderRpcError";
    this.code = code;
    if (data !== undefined) this.data = data;
  }
}
