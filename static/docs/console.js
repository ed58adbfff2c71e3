// The try-it console: a form made from the OpenRPC document, whose calls go to this site alone.
// The key and the last call are kept for this tab of the browser, in its session storage.
"use strict";

const MAX_SHOWN = 256 * 1024; // bytes of an answer: more makes pages slow, and nobody reads it
const DEEPEST = 40; // levels that are indented: what is deeper would be mostly blanks
const VARIABLE = "PORTCULLIS_KEY"; // of the environment, from which exported calls take the key
const STORED = "portcullis.console"; // the name in the session storage

const part = (id) => document.getElementById(id);
const form = part("console");

let api; // the OpenRPC document
let fields = []; // one for each parameter: how to read its value, and where faults are shown
let running; // the AbortController of a call on its way
let kept = restored(); // user, key, network, method, texts of the fields by name

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function link(text, href) {
  return element("a", { href }, text);
}

// The values that are stored for the tab.

// Returns the stored values, unless another user has logged in meanwhile.
function restored() {
  const { user } = form.dataset;
  let found = {};
  try {
    found = JSON.parse(sessionStorage.getItem(STORED)) ?? {};
  } catch {
    // The browser stores nothing, or this is the value of something else.
  }
  return found.user && found.user !== user ? { user } : { ...found, user };
}

function keep(changes) {
  kept = { ...kept, ...changes };
  try {
    sessionStorage.setItem(STORED, JSON.stringify(kept));
  } catch {
    // It is too long, or the browser stores nothing. The page works without.
  }
}

// What the document says of what is chosen.

const method = () => api.methods.find((one) => one.name === part("method").value);
const server = () => api.servers.find((one) => one.name === part("network").value);

function resolved(schema) {
  if (!schema.$ref) return schema;
  return schema.$ref.split("/").slice(1).reduce((found, name) => found[name], api);
}

function exampleOf(param) {
  const pairing = (method().examples ?? []).find((one) => one.name === server().name);
  return pairing?.params.find((one) => one.name === param.name)?.value;
}

// Fields of parameters. Each gives a JSON value, or undefined where nothing was filled in.

function choice(param, example) {
  const words = param.required ? ["true", "false"] : ["", "true", "false"];
  const control = element("select", {}, ...words.map((word) => element("option", { value: word }, word)));
  control.value = String(example ?? words[0]);
  return { control, read: () => (control.value ? control.value === "true" : undefined) };
}

function line(param, example, takesObjects) {
  const text = typeof example === "object" ? JSON.stringify(example) : (example ?? "");
  const control = element("input", { value: text, autocomplete: "off", spellcheck: false });
  const isObject = () => takesObjects && /^\s*[[{]/.test(control.value);
  const read = () => (isObject() ? JSON.parse(control.value) : control.value.trim() || undefined);
  return { control, read };
}

function json(param, example) {
  const text = example === undefined ? "" : JSON.stringify(example, null, 2);
  const control = element("textarea", { value: text, rows: Math.min(12, text.split("\n").length + 1), spellcheck: false });
  return { control, read: () => (control.value.trim() ? JSON.parse(control.value) : undefined) };
}

function fieldOf(param, number) {
  const schema = resolved(param.schema);
  const example = exampleOf(param);
  let made;
  if (schema.type === "boolean") made = choice(param, example);
  else if (schema.type === "string" || schema.oneOf) made = line(param, example, Boolean(schema.oneOf));
  else made = json(param, example);
  const { control } = made;
  control.id = `param-${number}`;
  const help = element("span", { className: "help", id: `${control.id}-help` }, param.summary ?? "");
  control.setAttribute("aria-describedby", help.id);
  const rest = element("span", { className: "quiet" }, param.required ? "" : " optional");
  const label = element("label", { htmlFor: control.id }, element("code", {}, param.name), rest);
  part("params").append(element("p", { className: "field" }, label, control, help));
  return made;
}

// The request.

function value(field) {
  field.control.setCustomValidity("");
  try {
    return field.read();
  } catch (error) {
    field.control.setCustomValidity(`Invalid JSON: ${error.message}`);
    return undefined;
  }
}

function params() {
  const values = fields.map(value);
  while (values.length && values.at(-1) === undefined) values.pop();
  return values.map((one) => one ?? null);
}

function requestBody() {
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: method().name, params: params() });
}

// Exported calls, which take the key from an environment variable.

function curlOf(url, call) {
  const quoted = JSON.stringify(call).replaceAll("'", "'\\''");
  return [
    `curl -s ${url}`,
    `-H "Authorization: Bearer $${VARIABLE}"`,
    "-H 'Content-Type: application/json'",
    `-d '${quoted}'`,
  ].join(" \\\n  ");
}

// Returns a JSON value as a Python literal. JSON's strings and numbers are Python's as well.
function literal(found) {
  if (found === null) return "None";
  if (typeof found === "boolean") return found ? "True" : "False";
  if (Array.isArray(found)) return `[${found.map(literal).join(", ")}]`;
  if (typeof found !== "object") return JSON.stringify(found);
  const members = Object.entries(found).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one)}`);
  return `{${members.join(", ")}}`;
}

function pythonOf(url, call) {
  return [
    "from os import environ",
    "",
    "from web3 import Web3",
    "",
    `w3 = Web3(Web3.HTTPProvider(f"${url}/{environ['${VARIABLE}']}"))`,
    `print(w3.provider.make_request(${literal(call.method)}, ${literal(call.params)}))`,
  ].join("\n");
}

function typescriptOf(url, call) {
  const body = JSON.stringify(call, null, 2).replaceAll("\n", "\n  ");
  return [
    `const response = await fetch("${url}", {`,
    '  method: "POST",',
    "  headers: {",
    `    Authorization: \`Bearer \${process.env.${VARIABLE}}\`,`,
    '    "Content-Type": "application/json",',
    "  },",
    `  body: JSON.stringify(${body}),`,
    "});",
    "console.log(await response.json());",
  ].join("\n");
}

function showExports() {
  const { url } = server();
  const call = { jsonrpc: "2.0", id: 1, method: method().name, params: params() };
  part("curl").textContent = curlOf(url, call);
  part("python").textContent = pythonOf(url, call);
  part("typescript").textContent = typescriptOf(url, call);
}

// Fills the fields with the last call, if it was one of this method.
function fillLast(chosen) {
  if (kept.method !== chosen.name || kept.network !== server().name) return;
  fields.forEach(({ control }, at) => {
    const text = kept.texts?.[chosen.params[at].name];
    if (typeof text === "string") control.value = text;
  });
}

function showMethod() {
  const chosen = method();
  part("about").replaceChildren(
    `${chosen.summary} Costs ${chosen["x-credits"]} credit${chosen["x-credits"] === 1 ? "" : "s"}. `,
    ...(chosen["x-entitlement"] ? [link("Needs access to tracing.", `${form.dataset.methods}#${chosen.name}`)] : []),
  );
  part("params").replaceChildren();
  fields = chosen.params.map(fieldOf);
  const address = new URLSearchParams({ network: server().name, method: chosen.name });
  history.replaceState(null, "", `?${address}`);
  fillLast(chosen);
  showExports();
}

// The answer.

// Returns JSON with a line for each member. It is laid out as text, not parsed: numbers keep
// all their digits, and what was cut in the middle can be shown as well.
function indented(text) {
  let out = "";
  let depth = 0;
  let isString = false;
  const newLine = () => `\n${"  ".repeat(Math.min(Math.max(depth, 0), DEEPEST))}`;
  for (let at = 0; at < text.length; at++) {
    const sign = text[at];
    if (isString) {
      out += sign;
      if (sign === "\\") out += text[++at] ?? "";
      else if (sign === '"') isString = false;
    } else if (sign === '"') {
      out += sign;
      isString = true;
    } else if (sign === "{" || sign === "[") {
      depth++;
      out += sign;
      if (!/[}\]]/.test(text[at + 1] ?? "")) out += newLine();
    } else if (sign === "}" || sign === "]") {
      depth--;
      out += /[{[]/.test(text[at - 1] ?? "") ? sign : newLine() + sign;
    } else if (sign === ",") out += sign + newLine();
    else if (sign === ":") out += ": ";
    else if (!/\s/.test(sign)) out += sign;
  }
  return out;
}

// Returns the beginning of a body, and whether that is all of it.
async function beginning(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for (;;) {
    const { done, value: chunk } = await reader.read();
    if (done) return { text: text + decoder.decode(), size, isWhole: true };
    text += decoder.decode(chunk.subarray(0, MAX_SHOWN - size), { stream: true });
    size += chunk.length;
    if (size > MAX_SHOWN) {
      reader.cancel();
      return { text, size: MAX_SHOWN, isWhole: false };
    }
  }
}

function errorOf(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return undefined; // cut, or no JSON: its status tells
  }
}

// Returns the path of a link of the service, if it is below a path. Errors name the public host,
// and this page may be open under another.
function onThisSite(address, below) {
  if (typeof address !== "string" || !URL.canParse(address)) return undefined;
  const { pathname, hash } = new URL(address);
  return pathname.startsWith(below) ? pathname + hash : undefined;
}

function creditsOf(response) {
  const credits = response.headers.get("x-credits");
  if (credits === null) return ""; // the request was rejected before its calls were read
  return `${Number(credits).toLocaleString("en")} credit${credits === "1" ? "" : "s"}, `;
}

function showError(error) {
  const place = part("error");
  place.hidden = !error;
  if (!error) return;
  const { reason, see, request_access: access } = error.data ?? {};
  place.replaceChildren(`${error.code}: ${error.message}. `);
  const [meaning, request] = [onThisSite(see, "/docs/errors"), onThisSite(access, "/dashboard/")];
  if (meaning) place.append(link(`What ${reason} means`, meaning));
  if (request) place.append(" ", link("Request access", request));
}

async function show(response, started) {
  const { text, size, isWhole } = await beginning(response);
  const time = Math.round(performance.now() - started);
  const kind = response.ok ? "success" : "failed";
  part("status").replaceChildren(
    element("span", { className: `badge ${kind}` }, `${response.status} ${response.statusText}`.trim()),
    ` ${time} ms, ${creditsOf(response)}${isWhole ? "" : "more than "}${size.toLocaleString("en")} bytes`,
  );
  part("headers").textContent = [...response.headers].map(([name, held]) => `${name}: ${held}`).join("\n");
  part("body").textContent = indented(text);
  part("cut").hidden = isWhole;
  part("cut").textContent = "The response is cut off here. The exported calls return all of it.";
  showError(isWhole ? errorOf(text) : undefined);
  part("answer").hidden = false;
}

async function run() {
  const body = requestBody();
  if (!form.reportValidity()) return;
  const headers = { "Content-Type": "application/json" };
  const key = part("key").value.trim();
  const names = method().params.map((param) => param.name);
  const texts = Object.fromEntries(fields.map(({ control }, at) => [names[at], control.value]));
  keep({ key, network: server().name, method: method().name, texts });
  if (key) headers.Authorization = `Bearer ${key}`;
  running = new AbortController();
  part("run").textContent = "Stop";
  part("state").textContent = "Waiting for the response …";
  const started = performance.now();
  try {
    const response = await fetch(new URL(server().url).pathname, {
      method: "POST",
      headers,
      body,
      signal: running.signal,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    await show(response, started);
    part("state").textContent = "";
  } catch (error) {
    const stopped = error.name === "AbortError";
    part("state").textContent = stopped ? "Stopped." : `No response: ${error.message}. Check your connection, and run the call again.`;
  } finally {
    running = undefined;
    part("run").textContent = "Run";
  }
}

// The page.

function fillPickers() {
  part("network").append(...api.servers.map((one) => element("option", { value: one.name }, one.summary)));
  const groups = new Map();
  const place = (name) => (name.startsWith("eth_") ? ` ${name}` : name); // these come first
  const names = api.methods.map((one) => one.name);
  names.sort((one, other) => (place(one) < place(other) ? -1 : 1));
  for (const name of names) {
    const label = name.split(/[_.]/)[0];
    if (!groups.has(label)) groups.set(label, element("optgroup", { label }));
    groups.get(label).append(element("option", { value: name }, name));
  }
  part("method").append(...groups.values());
}

// Chooses what the page's address names, if there is such a thing.
function choose(picker, wanted, otherwise) {
  const names = [...picker.options].map((option) => option.value);
  picker.value = names.includes(wanted) ? wanted : otherwise;
}

async function start() {
  const response = await fetch(form.dataset.document, { credentials: "omit" });
  if (!response.ok) throw new Error(`status ${response.status}`);
  api = await response.json();
  if (!api.servers) throw new Error("no networks are available yet");
  fillPickers();
  const wanted = new URLSearchParams(location.search);
  choose(part("network"), wanted.get("network") ?? kept.network, api.servers[0].name);
  choose(part("method"), wanted.get("method") ?? kept.method, "eth_blockNumber");
  part("key").value = kept.key ?? "";
  showMethod();
  part("network").addEventListener("change", showMethod);
  part("method").addEventListener("change", showMethod);
  part("params").addEventListener("input", showExports);
  part("key").addEventListener("change", () => keep({ key: part("key").value.trim() }));
  part("forget").addEventListener("click", () => {
    part("key").value = "";
    keep({ key: "" });
    part("key").focus();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort();
    else run();
  });
  form.hidden = part("request").hidden = false;
}

start().catch((error) => {
  part("fault").textContent = `The console could not start: ${error.message}. Reload the page to try again.`;
  part("fault").hidden = false;
});
