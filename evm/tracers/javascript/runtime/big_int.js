// `bigInt`, the numbers that tracers calculate with: the interface of the library
// big-integer (https://github.com/peterolson/BigInteger.js) over native BigInts.
// Left out: primes and random numbers.
(function () {
  'use strict';

  const DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';

  const absolute = (n) => (n < 0n ? -n : n);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  function divisor(value) {
    const n = native(value);
    if (n === 0n) throw new Error('Cannot divide by zero');
    return n;
  }

  function shift(value) {
    const n = native(value);
    if (absolute(n) > 2n ** 53n) throw new Error(`${n} is too large for shifting.`);
    return n;
  }

  function greatestDivisor(a, b) {
    while (b !== 0n) [a, b] = [b, a % b];
    return absolute(a);
  }

  function digitsOf(n, base) {
    if (base === 1n) return Array(Number(n)).fill(1n);
    const digits = [];
    do {
      digits.push(n % base);
      n /= base;
    } while (n !== 0n);
    return digits.reverse();
  }

  class BigInteger {
    constructor(value) {
      this.value = value;
    }

    add(n) { return new BigInteger(this.value + native(n)); }
    subtract(n) { return new BigInteger(this.value - native(n)); }
    multiply(n) { return new BigInteger(this.value * native(n)); }
    divide(n) { return new BigInteger(this.value / divisor(n)); }
    mod(n) { return new BigInteger(this.value % divisor(n)); }
    divmod(n) { return { quotient: this.divide(n), remainder: this.mod(n) }; }
    square() { return new BigInteger(this.value * this.value); }
    negate() { return new BigInteger(-this.value); }
    abs() { return new BigInteger(absolute(this.value)); }
    next() { return new BigInteger(this.value + 1n); }
    prev() { return new BigInteger(this.value - 1n); }

    pow(n) {
      const exponent = native(n), base = this.value;
      if (exponent >= 0n) return new BigInteger(base ** exponent);
      if (base === 1n || base === -1n) return new BigInteger(base ** -exponent);
      return new BigInteger(0n);
    }

    modPow(exponent, modulus) {
      const m = native(modulus);
      if (m === 0n) throw new Error('Cannot take modPow with modulus 0');
      let e = native(exponent), base = this.value % m, result = 1n % m;
      if (e < 0n) {
        base = new BigInteger(base).modInv(m).value;
        e = -e;
      }
      for (; e > 0n; e >>= 1n) {
        if (e & 1n) result = (result * base) % m;
        base = (base * base) % m;
      }
      return new BigInteger(result);
    }

    modInv(modulus) {
      const n = native(modulus);
      let [t, next, r, rest] = [0n, 1n, absolute(n), absolute(this.value)];
      while (rest !== 0n) {
        const quotient = r / rest;
        [t, next] = [next, t - quotient * next];
        [r, rest] = [rest, r - quotient * rest];
      }
      if (r !== 1n) throw new Error(`${this} and ${n} are not co-prime`);
      if (t < 0n) t += absolute(n);
      return new BigInteger(this.value < 0n ? -t : t);
    }

    and(n) { return new BigInteger(this.value & native(n)); }
    or(n) { return new BigInteger(this.value | native(n)); }
    xor(n) { return new BigInteger(this.value ^ native(n)); }
    not() { return new BigInteger(~this.value); }
    shiftLeft(n) { return new BigInteger(this.value << shift(n)); }
    shiftRight(n) { return new BigInteger(this.value >> shift(n)); }

    bitLength() {
      const n = this.value < 0n ? -this.value - 1n : this.value;
      return new BigInteger(n === 0n ? 0n : BigInt(n.toString(2).length));
    }

    compare(n) {
      if (n === Infinity) return -1;
      if (n === -Infinity) return 1;
      return compare(this.value, native(n));
    }

    compareAbs(n) {
      if (n === Infinity || n === -Infinity) return -1;
      return compare(absolute(this.value), absolute(native(n)));
    }

    equals(n) { return this.compare(n) === 0; }
    notEquals(n) { return this.compare(n) !== 0; }
    greater(n) { return this.compare(n) > 0; }
    lesser(n) { return this.compare(n) < 0; }
    greaterOrEquals(n) { return this.compare(n) >= 0; }
    lesserOrEquals(n) { return this.compare(n) <= 0; }

    isEven() { return (this.value & 1n) === 0n; }
    isOdd() { return (this.value & 1n) === 1n; }
    isPositive() { return this.value > 0n; }
    isNegative() { return this.value < 0n; }
    isUnit() { return absolute(this.value) === 1n; }
    isZero() { return this.value === 0n; }

    isDivisibleBy(n) {
      const by = native(n);
      return by !== 0n && this.value % by === 0n;
    }

    toArray(radix) {
      const base = native(radix === undefined ? 10 : radix);
      if (base < 1n) throw new Error('The base must be at least 1');
      return {
        value: digitsOf(absolute(this.value), base).map(Number),
        isNegative: this.isNegative(),
      };
    }

    toString(radix, alphabet) {
      if (radix === undefined) radix = 10;
      if (!alphabet && radix >= 2 && radix <= 36) return this.value.toString(radix);
      const { value, isNegative } = this.toArray(radix);
      const letters = alphabet || DIGITS;
      const digit = (d) => (d < letters.length ? letters[d] : `<${d}>`);
      return (isNegative ? '-' : '') + value.map(digit).join('');
    }

    toJSNumber() { return Number(this.value); }
    valueOf() { return Number(this.value); }
    toJSON() { return this.value.toString(); }
  }

  const ALIASES = {
    plus: 'add', minus: 'subtract', times: 'multiply', over: 'divide',
    remainder: 'mod', compareTo: 'compare', eq: 'equals', neq: 'notEquals',
    gt: 'greater', lt: 'lesser', geq: 'greaterOrEquals', leq: 'lesserOrEquals',
  };
  for (const alias of Object.keys(ALIASES)) {
    const value = BigInteger.prototype[ALIASES[alias]];
    Object.defineProperty(BigInteger.prototype, alias, { value, writable: true });
  }

  function parseText(text) {
    const [, sign, whole, fraction = '', exponent = '0'] =
      /^([+-]?)(\d+)(?:\.(\d*))?(?:e\+?(\d{1,6}))?$/i.exec(text) || [];
    if (whole === undefined) {
      // Hexadecimal and such, as far as a number can hold it exactly.
      const n = text.trim() === '' ? NaN : Number(text);
      if (Number.isSafeInteger(n)) return BigInt(n);
      throw new Error('Invalid integer: ' + text);
    }
    const zeros = Number(exponent) - fraction.length;
    if (zeros < 0) throw new Error('Invalid integer: ' + text);
    const n = BigInt(whole + fraction) * 10n ** BigInt(zeros);
    return sign === '-' ? -n : n;
  }

  function parseInBase(text, radix, alphabet, isCaseSensitive) {
    const base = native(radix), isNegative = text[0] === '-';
    let letters = alphabet || DIGITS;
    if (!isCaseSensitive) {
      text = text.toLowerCase();
      letters = letters.toLowerCase();
    }
    if (!alphabet && (base === 2n || base === 8n || base === 16n)) {
      // What native code can parse is much faster.
      const digits = isNegative ? text.slice(1) : text;
      const prefix = { 2: '0b', 8: '0o', 16: '0x' }[base];
      if (/^[0-9a-f]+$/.test(digits)) {
        try {
          const n = BigInt(prefix + digits);
          return isNegative ? -n : n;
        } catch (error) {
          // A digit too high for the base: named below.
        }
      }
    }
    let n = 0n;
    for (let i = isNegative ? 1 : 0; i < text.length; i++) {
      let digit = letters.indexOf(text[i]);
      if (text[i] === '<') {
        const end = text.indexOf('>', i);
        digit = Number(text.slice(i + 1, end));
        i = end;
      } else if (digit < 0) {
        throw new Error(text[i] + ' is not a valid character');
      } else if (absolute(base) <= digit && !(digit === 1 && absolute(base) === 1n)) {
        throw new Error(`${text[i]} is not a valid digit in base ${radix}.`);
      }
      n = n * base + BigInt(digit);
    }
    return isNegative ? -n : n;
  }

  /** Return the native BigInt of whatever stands for an integer. */
  function native(value) {
    if (value instanceof BigInteger) return value.value;
    if (typeof value === 'bigint') return value;
    // big-integer reads the text of a number that is too large to be exact.
    if (!Number.isInteger(value)) {
      if (typeof value !== 'number') return parseText(String(value));
      throw new Error(value + ' is not an integer.');
    }
    return Number.isSafeInteger(value) ? BigInt(value) : parseText(String(value));
  }

  function bigInt(value, base, alphabet, isCaseSensitive) {
    if (value === undefined) return new BigInteger(0n);
    if (base === undefined || (Number(base) === 10 && !alphabet)) {
      return new BigInteger(native(value));
    }
    return new BigInteger(parseInBase(String(value), base, alphabet, isCaseSensitive));
  }

  // By this name model.js knows what not to show in an error's position.
  for (const helper of [divisor, shift, parseText, parseInBase, native]) {
    Object.defineProperty(helper, 'name', { value: '@' });
  }

  bigInt.prototype = BigInteger.prototype;
  bigInt.zero = new BigInteger(0n);
  bigInt.one = new BigInteger(1n);
  bigInt.minusOne = new BigInteger(-1n);
  bigInt.isInstance = (value) => value instanceof BigInteger;
  bigInt.max = (a, b) => (bigInt(a).greater(b) ? bigInt(a) : bigInt(b));
  bigInt.min = (a, b) => (bigInt(a).lesser(b) ? bigInt(a) : bigInt(b));
  bigInt.gcd = (a, b) => new BigInteger(greatestDivisor(native(a), native(b)));
  bigInt.lcm = function (a, b) {
    const [m, n] = [absolute(native(a)), absolute(native(b))];
    return new BigInteger(m === 0n ? 0n : (m / greatestDivisor(m, n)) * n);
  };
  bigInt.fromArray = function (digits, base, isNegative) {
    const radix = native(base === undefined ? 10 : base);
    const n = digits.reduce((sum, digit) => sum * radix + native(digit), 0n);
    return new BigInteger(isNegative ? -n : n);
  };
  return bigInt;
})()
