// What a tracer sees of the EVM: `log`, `db`, `ctx`, frames and the global functions,
// as geth has them (go-ethereum, eth/tracers/js/goja.go).
//
// Evaluated, this is a function that takes `bigInt` and gives `entry(name)`, by which
// the host gets what it may call. The host's own functions come as globals named
// `host:…`, and are taken away before a tracer runs. Only numbers and text pass between
// the two: bytes and big numbers go as hexadecimal digits, checked before they go.
(function (bigInt) {
  'use strict';

  // What is needed later, whatever a tracer does to the built-in objects.
  const { apply, ownKeys } = Reflect, { bind } = Function.prototype;
  const { defineProperty, freeze } = Object, { exec } = RegExp.prototype;
  const { slice: sliceText, toWellFormed } = String.prototype;
  const { MAX_SAFE_INTEGER } = Number, toNumber = Number, { trunc } = Math;
  const evaluate = eval, text = String, bytesFromHex = Uint8Array.fromHex;
  const toJson = JSON.stringify, parseJson = JSON.parse;
  const stackOf = Object.getOwnPropertyDescriptor(Error.prototype, 'stack').get;
  const hexOfBytes = Uint8Array.prototype.toHex, setBytes = Uint8Array.prototype.set;
  const BigInteger = bigInt.prototype.constructor;

  const host = { __proto__: null };
  for (const name of ownKeys(globalThis)) {
    if (typeof name === 'string' && name.startsWith('host:')) {
      host[name.slice(5)] = globalThis[name];
      delete globalThis[name];
    }
  }
  // Nothing to share memory with, and nothing to wait for.
  delete globalThis.SharedArrayBuffer;
  delete globalThis.Atomics;

  // Errors

  const PADDING_LIMIT = 1024 * 1024;
  const ERROR_LIMIT = 10000;
  const HIDDEN = '@';

  /** Give our functions a name by which `position` leaves them out. */
  function hide(...functions) {
    for (const value of functions) defineProperty(value, 'name', { value: HIDDEN });
  }

  let failure = null;

  /**
   * Fail for good: a tracer that catches the error has failed all the same.
   * (geth interrupts its engine.)
   */
  function abort(message) {
    const error = new Error(message);
    if (failure === null) {
      failure = message;
      failure += position(error);
    }
    throw error;
  }

  /** Return the answer of a host function that may fail, which it tells by null. */
  function answer(value) {
    return value === null ? abort('invalid argument') : value;
  }

  /** Return ' at step (<eval>:1:53)', where the tracer's own code failed. */
  function position(error) {
    for (const line of apply(stackOf, error, []).split('\n')) {
      const place = /^ +at (?:(.*) \()?<input>:(\d+:\d+)\)?$/.exec(line);
      if (place === null || place[1] === HIDDEN) continue;
      const [, name, where] = place;
      const isNamed = name && name !== '<eval>' && name !== '<anonymous>';
      return isNamed ? ` at ${name} (<eval>:${where})` : ` at <eval>:${where}`;
    }
    return '';
  }

  function describe(error) {
    return text(error) + (error instanceof Error ? position(error) : '');
  }

  // Bytes

  function bytes(hex) {
    return apply(bytesFromHex, Uint8Array, [hex]);
  }

  function hexFromText(string) {
    let digits = string.startsWith('0x') || string.startsWith('0X')
      ? string.slice(2) : string;
    if (digits.length % 2) digits = '0' + digits;
    return /^(?:[0-9a-f]{2})*/i.exec(digits)[0].toLowerCase();
  }

  /** Return the hexadecimal digits of a Uint8Array, an Array, or where allowed text. */
  function hexOf(value, allowsText) {
    if (value instanceof Uint8Array) return apply(hexOfBytes, value, []);
    if (Array.isArray(value)) return apply(hexOfBytes, Uint8Array.from(value), []);
    if (allowsText && (typeof value === 'string' || value instanceof String)) {
      return hexFromText(text(value));
    }
    return abort('invalid buffer type');
  }

  /** Return what may go to the host, which trusts it to be digits. */
  function checked(hex) {
    const isHex = typeof hex === 'string' && apply(exec, /^[0-9a-f]*$/, [hex]) !== null;
    return isHex ? hex : abort('invalid buffer type');
  }

  /** Return exactly `size` bytes: zeros to the left, or what is too much cut off there. */
  function fit(hex, size) {
    return checked(hex.padStart(2 * size, '0').slice(-2 * size));
  }

  function addressOf(value, allowsText) {
    return fit(hexOf(value, allowsText), 20);
  }

  // Numbers

  function big(value) {
    return new BigInteger(BigInt(value));
  }

  function integer(value) {
    const n = trunc(toNumber(value)) || 0;
    if (n > MAX_SAFE_INTEGER) return MAX_SAFE_INTEGER;
    return n < -MAX_SAFE_INTEGER ? -MAX_SAFE_INTEGER : n;
  }

  // log

  const NAMES = parseJson(host.opcode_names());
  let pc = 0, op = 0, gas = 0, cost = 0, depth = 0, refund = 0;

  const log = {
    op: {
      toNumber() { return op; },
      toString() { return NAMES[op]; },
      isPush() { return op >= 0x5f && op <= 0x7f; },
    },
    stack: {
      peek(index) {
        const i = integer(index), size = host.stack_length();
        if (i < 0 || i >= size) {
          abort(`tracer accessed out of bound stack: size ${size}, index ${i}`);
        }
        return big(host.stack_item(i | 0));
      },
      length() { return host.stack_length(); },
    },
    memory: {
      slice(begin, end) {
        const from = integer(begin), to = integer(end);
        if (from === to) return new Uint8Array(0);
        if (to < from || from < 0) {
          abort(`tracer accessed out of bound memory: offset ${from}, end ${to}`);
        }
        const size = host.memory_length();
        if (to - size > PADDING_LIMIT) {
          abort(`reached limit for padding memory slice: ${to - size}`);
        }
        const found = bytes(host.memory(from, to));
        if (found.length === to - from) return found;
        const padded = new Uint8Array(to - from);
        apply(setBytes, padded, [found]);
        return padded;
      },
      getUint(offset) {
        const from = integer(offset), size = host.memory_length();
        if (from < 0 || size < from + 32) {
          abort('tracer accessed out of bound memory: ' +
            `available ${size}, offset ${from}, size 32`);
        }
        return big('0x' + host.memory(from, from + 32));
      },
      length() { return host.memory_length(); },
    },
    contract: {
      getCaller() { return bytes(host.caller()); },
      getAddress() { return bytes(host.address()); },
      getValue() { return big(host.value()); },
      getInput() { return bytes(host.input()); },
    },
    getPC() { return pc; },
    getGas() { return gas; },
    getCost() { return cost; },
    getDepth() { return depth; },
    getRefund() { return refund; },
    getError() { return host.error() || undefined; },
  };

  // db

  const db = {
    getBalance(address) { return big(answer(host.balance(addressOf(address)))); },
    getNonce(address) { return answer(host.nonce(addressOf(address))); },
    getCode(address) { return bytes(answer(host.code(addressOf(address)))); },
    getState(address, key) {
      const slot = fit(hexOf(key), 32);
      return bytes(answer(host.storage(addressOf(address), slot)));
    },
    exists(address) { return answer(host.exists(addressOf(address))); },
  };

  // Frames

  const call = {
    getType() { return host.frame_type(); },
    getFrom() { return bytes(host.frame_from()); },
    getTo() { return bytes(host.frame_to()); },
    getInput() { return bytes(host.frame_input()); },
    getGas() { return host.frame_gas(); },
    getValue() {
      const value = host.frame_value();
      return value === '' ? undefined : big(value);
    },
  };

  const outcome = {
    getGasUsed() { return host.frame_gas_used(); },
    getOutput() { return bytes(host.frame_output()); },
    getError() { return host.frame_error() || undefined; },
  };

  // Globals

  const globals = {
    bigInt,
    toHex(value) { return '0x' + hexOf(value); },
    toWord(value) { return bytes(fit(hexOf(value, true), 32)); },
    toAddress(value) { return bytes(addressOf(value, true)); },
    toContract(creator, nonce) {
      return bytes(answer(host.created(addressOf(creator, true), integer(nonce))));
    },
    toContract2(creator, salt, initCode) {
      const word = fit(hexFromText(text(salt)), 32);
      const address = addressOf(creator, true), code = checked(hexOf(initCode, true));
      return bytes(answer(host.created_with_salt(address, word, code)));
    },
    isPrecompiled(address) { return answer(host.is_precompiled(addressOf(address, true))); },
    slice(value, start, end) {
      const hex = hexOf(value), size = hex.length / 2;
      const from = integer(start), to = integer(end);
      if (from < 0 || from > to || to > size) {
        abort('Tracer accessed out of bound memory: ' +
          `available ${size}, offset ${from}, size ${to - from}`);
      }
      return bytes(hex.slice(2 * from, 2 * to));
    },
  };

  function context() {
    const { numbers, bigs, buffers, texts } = parseJson(host.context());
    const ctx = { ...texts, ...numbers };
    for (const name of ownKeys(bigs)) ctx[name] = big(bigs[name]);
    for (const name of ownKeys(buffers)) ctx[name] = bytes(buffers[name]);
    return ctx;
  }

  // What the host calls. Each of these gives 0, or 1 when the tracer has failed: nothing
  // may be thrown over to the host, where a thrown object's methods would be called.

  const STEPS = 2, FRAMES = 4;
  let step, fault, enter, exit, result, answered = null;

  function guard(hook) {
    const guarded = function (first, second) {
      try {
        const wanted = hook(first, second) | 0;
        return failure === null ? wanted : 1;
      } catch (error) {
        if (failure === null) failure = error;
        return 1;
      }
    };
    hide(guarded, hook);
    return guarded;
  }

  const isFunction = (value) => typeof value === 'function';

  /** Whether a function is written with an empty body: it needs no calling. */
  function isEmpty(value) {
    const source = apply(Function.prototype.toString, value, []);
    return /^(?:function)?\s*\w*\s*\([\w\s,]*\)\s*(?:=>)?\s*\{\s*\}$/.test(source);
  }

  /** Evaluate a tracer, set it up, and tell what it wants to see. */
  function load(source, config) {
    const tracer = Object(evaluate('(' + source + ')'));
    const hooks = ['result', 'fault', 'step', 'enter', 'exit', 'setup'].map((name) => {
      const hook = tracer[name];
      return isFunction(hook) ? apply(bind, hook, [tracer]) : null;
    });
    let setup;
    [result, fault, step, enter, exit, setup] = hooks;
    if (result === null) {
      failure = 'trace object must expose a function result()';
    } else if (fault === null) {
      failure = 'trace object must expose a function fault()';
    } else if ((enter === null) !== (exit === null)) {
      failure = 'trace object must expose either both or none of enter() and exit()';
    } else if (setup !== null) {
      setup(config);
    }
    const wantsSteps = step !== null || !isEmpty(tracer.fault);
    return (wantsSteps ? STEPS : 0) | (enter === null ? 0 : FRAMES);
  }

  /**
   * Return a result as JSON. Nothing at all is {}, as in geth, whose engine has it as an
   * empty Go struct. Numbers that JSON lacks keep their names: the host refuses them.
   */
  function encode(value) {
    if (value === undefined || value === null || typeof value === 'symbol') return '{}';
    const isInJson = typeof value !== 'number' || value - value === 0;
    return isInJson ? toJson(value) : text(value);
  }

  const entries = {
    load: guard(load),
    // Written out, because it is called for every instruction.
    step(newPc, newOp, newGas, newCost, newDepth, newRefund) {
      try {
        pc = newPc;
        op = newOp;
        gas = newGas;
        cost = newCost;
        depth = newDepth;
        refund = newRefund;
        if (step !== null) step(log, db);
        return failure === null ? 0 : 1;
      } catch (error) {
        if (failure === null) failure = error;
        return 1;
      }
    },
    fault: guard(() => {
      // geth sets `log` only for `step`.
      if (step === null) pc = op = gas = cost = depth = refund = 0;
      fault(log, db);
    }),
    enter: guard(() => { enter(call); }),
    exit: guard(() => { exit(outcome); }),
    result: guard(() => { answered = encode(result(context(), db)); }),
    answered() {
      return answered === undefined ? 'null' : apply(toWellFormed, answered, []);
    },
    failure() {
      // Null is thrown when there is no memory even for an error.
      if (failure === null) return 'InternalError: out of memory';
      try {
        const message = typeof failure === 'string' ? failure : describe(failure);
        return apply(toWellFormed, apply(sliceText, message, [0, ERROR_LIMIT]), []);
      } catch (error) {
        return 'the tracer failed, and its error can not be shown';
      }
    },
  };

  hide(...[log.op, log.stack, log.memory, log.contract].flatMap(Object.values));
  hide(...Object.values(log).filter(isFunction), ...Object.values(entries));
  hide(...[db, call, outcome, globals].flatMap(Object.values), hexOf, addressOf);
  hide(checked, fit);
  hide(abort, answer, bytes, big, integer, hexFromText, load, context);
  for (const name of ownKeys(bigInt.prototype)) {
    if (isFunction(bigInt.prototype[name])) hide(bigInt.prototype[name]);
  }
  for (const name of ownKeys(globals)) {
    defineProperty(globalThis, name,
      { value: globals[name], writable: true, configurable: true });
  }
  // The host turns the engine's own errors (no more time, memory, stack) into text, when
  // nothing of a tracer's may be run any more: so they look nothing up beyond these.
  defineProperty(Error, 'prepareStackTrace', { value: undefined });
  for (const { prototype } of [InternalError, RangeError]) {
    defineProperty(prototype, 'toString', { value: Error.prototype.toString });
    defineProperty(prototype, 'stack', { value: '' });
    defineProperty(prototype, Symbol.toPrimitive, { value: undefined });
    freeze(prototype);
  }
  return (name) => entries[name];
})
