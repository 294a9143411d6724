// A second verifier that is not isuit's: one file of JavaScript that needs nothing else, written from docs/proofs.md.
//
//     node verify.js bundle DIRECTORY...    [--each]                  --each: one line of output for each of them
//     node verify.js release FILE           [--key FILE]              JSON Lines, or the atlas as a page (.html)
//     node verify.js receipt FILE.json --id ID [--key FILE]
//     node verify.js proof FILE.json        [--key FILE] [--kept CHECKPOINT]
//     node verify.js checkpoint FILE        --key FILE [--witness FILE]
//
// Says what holds, or what is wrong (exit 1). A key is a C2SP verifier key; without one, a document's own key is taken
// at its word. verify.html runs the same functions in a browser, on files that never leave it.

"use strict";

class Wrong extends Error {}

function require_(holds, sentence) {
  if (!holds) throw new Wrong(sentence);
}

// ---- Bytes ----

const utf8 = (text) => new TextEncoder().encode(text);
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const same = (one, two) => hex(one) === hex(two);

function text(bytes) {
  return new TextDecoder("utf-8", { fatal: true }).decode(bytes); // leaves out a mark of byte order
}

function joined(...parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole;
}

function unhex(digits) {
  require_(typeof digits === "string" && /^([0-9a-f]{2})*$/i.test(digits), "hex digits are none");
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function unbase64(encoded) {
  let found = "";
  try {
    found = atob(encoded);
  } catch {
    throw new Wrong("a text is not base64");
  }
  require_(btoa(found) === encoded, "base64 is not in its canonical spelling");
  return Uint8Array.from(found, (sign) => sign.charCodeAt(0));
}

// ---- SHA-256 and SHA-512 (FIPS 180-4): their constants are roots of the first primes, so they are computed ----

function integerRoot(number, degree) {
  let root = 1n << BigInt(Math.ceil(number.toString(2).length / degree)); // above it; Newton's steps come down
  for (;;) {
    const next = ((BigInt(degree) - 1n) * root + number / root ** BigInt(degree - 1)) / BigInt(degree);
    if (next >= root) return root;
    root = next;
  }
}

const PRIMES = [];
for (let number = 2; PRIMES.length < 80; number += 1) {
  if (PRIMES.every((prime) => number % prime)) PRIMES.push(number);
}
const WORD = (1n << 64n) - 1n;
const CUBE_ROOTS = PRIMES.map((prime) => integerRoot(BigInt(prime) << 192n, 3) & WORD); // 64 bits after the point
const SQUARE_ROOTS = PRIMES.slice(0, 8).map((prime) => integerRoot(BigInt(prime) << 128n, 2) & WORD);
const K_256 = Int32Array.from(CUBE_ROOTS.slice(0, 64), (root) => Number(root >> 32n));
const START_256 = Int32Array.from(SQUARE_ROOTS, (root) => Number(root >> 32n));

function padded(message, block) {
  const length = Math.ceil((message.length + 1 + block / 8) / block) * block;
  const whole = new Uint8Array(length);
  whole.set(message);
  whole[message.length] = 0x80;
  new DataView(whole.buffer).setBigUint64(length - 8, BigInt(message.length) * 8n);
  return new DataView(whole.buffer);
}

function sha256(message) {
  const data = padded(message, 64);
  const state = Int32Array.from(START_256);
  const word = new Int32Array(64);
  const turn = (value, by) => (value >>> by) | (value << (32 - by));
  for (let block = 0; block < data.byteLength; block += 64) {
    for (let i = 0; i < 16; i += 1) word[i] = data.getInt32(block + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const small = turn(word[i - 15], 7) ^ turn(word[i - 15], 18) ^ (word[i - 15] >>> 3);
      const large = turn(word[i - 2], 17) ^ turn(word[i - 2], 19) ^ (word[i - 2] >>> 10);
      word[i] = word[i - 16] + small + word[i - 7] + large;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i += 1) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K_256[i] + word[i]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] += value));
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((value, i) => digest.setInt32(4 * i, value));
  return new Uint8Array(digest.buffer);
}

function sha512(message) {
  const data = padded(message, 128);
  const state = [...SQUARE_ROOTS];
  const turn = (value, by) => ((value >> by) | (value << (64n - by))) & WORD;
  for (let block = 0; block < data.byteLength; block += 128) {
    const word = Array.from({ length: 16 }, (_, i) => data.getBigUint64(block + 8 * i));
    for (let i = 16; i < 80; i += 1) {
      const small = turn(word[i - 15], 1n) ^ turn(word[i - 15], 8n) ^ (word[i - 15] >> 7n);
      const large = turn(word[i - 2], 19n) ^ turn(word[i - 2], 61n) ^ (word[i - 2] >> 6n);
      word.push((word[i - 16] + small + word[i - 7] + large) & WORD);
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 80; i += 1) {
      const mixed = turn(e, 14n) ^ turn(e, 18n) ^ turn(e, 41n);
      const one = h + mixed + ((e & f) ^ (~e & WORD & g)) + CUBE_ROOTS[i] + word[i];
      const two = (turn(a, 28n) ^ turn(a, 34n) ^ turn(a, 39n)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) & WORD, c, b, a, (one + two) & WORD];
    }
    [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i] = (state[i] + value) & WORD));
  }
  return unhex(state.map((value) => value.toString(16).padStart(16, "0")).join(""));
}

// ---- Ed25519 (RFC 8032): verification only, so nothing here is secret ----

const P = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const mod = (number, by = P) => ((number % by) + by) % by;

function power(base, exponent) {
  let found = 1n;
  for (let square = mod(base), left = exponent; left > 0n; left >>= 1n, square = (square * square) % P) {
    if (left & 1n) found = (found * square) % P;
  }
  return found;
}

const inverse = (number) => power(number, P - 2n);
const D = mod(-121665n * inverse(121666n));
const ROOT_OF_MINUS_ONE = power(2n, (P - 1n) / 4n);
const ZERO = { x: 0n, y: 1n, z: 1n, t: 0n }; // extended coordinates: x/z, y/z, and t = x y / z

function add(one, two) {
  const a = (one.y - one.x) * (two.y - two.x);
  const b = (one.y + one.x) * (two.y + two.x);
  const c = 2n * one.t * mod(two.t * D);
  const d = 2n * one.z * two.z;
  const [e, f, g, h] = [mod(b - a), mod(d - c), mod(d + c), mod(b + a)];
  return { x: mod(e * f), y: mod(g * h), z: mod(f * g), t: mod(e * h) };
}

function multiple(number, point) {
  let found = ZERO;
  for (let doubled = point, left = number; left > 0n; left >>= 1n, doubled = add(doubled, doubled)) {
    if (left & 1n) found = add(found, doubled);
  }
  return found;
}

const littleEndian = (bytes) => BigInt("0x" + hex(Uint8Array.from(bytes).reverse()));

function decodedPoint(bytes) {
  const number = littleEndian(bytes);
  const [sign, y] = [number >> 255n, number & (2n ** 255n - 1n)];
  if (y >= P) return null;
  const square = mod((y * y - 1n) * inverse(D * y * y + 1n)); // x squared, from the curve's equation
  let x = power(square, (P + 3n) / 8n);
  if (mod(x * x - square)) x = mod(x * ROOT_OF_MINUS_ONE);
  if (mod(x * x - square) || (x === 0n && sign)) return null;
  if ((x & 1n) !== sign) x = P - x;
  return { x, y, z: 1n, t: mod(x * y) };
}

function encodedPoint({ x, y, z }) {
  const scale = inverse(z);
  const number = mod(y * scale) | ((mod(x * scale) & 1n) << 255n);
  return unhex(number.toString(16).padStart(64, "0")).reverse();
}

const BASE = decodedPoint(Uint8Array.from({ length: 32 }, (_, i) => (i ? 0x66 : 0x58)));

function signatureHolds(publicKey, message, signature) {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const [commitment, scalar] = [signature.slice(0, 32), littleEndian(signature.slice(32))];
  const key = decodedPoint(publicKey);
  if (key === null || scalar >= ORDER) return false;
  const challenge = mod(littleEndian(sha512(joined(commitment, publicKey, message))), ORDER);
  const minus = { x: mod(-key.x), y: key.y, z: 1n, t: mod(-key.t) };
  return same(encodedPoint(add(multiple(scalar, BASE), multiple(challenge, minus))), commitment);
}

// ---- JSON: read so that no two programs read it differently, written canonically (RFC 8785) ----

const TOKENS = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|[[\]{}]/g;

function json(content) {
  const found = JSON.parse(content);
  let [depth, names] = [0, 0];
  for (const [token, colon] of content.matchAll(TOKENS)) {
    if (token === "[" || token === "{") depth += 1;
    if (token === "]" || token === "}") depth -= 1;
    require_(depth <= 64, "JSON is nested too deep");
    if (colon) names += 1;
    const big = /^-?\d+$/.test(token) && Math.abs(Number(token)) > 2 ** 53;
    require_(!big, "JSON holds an integer beyond 2^53");
  }
  require_(countedNames(found) === names, "JSON has a name twice");
  return found;
}

function countedNames(value) {
  if (typeof value === "string") require_(value.isWellFormed(), "a text is not Unicode");
  if (typeof value === "number") require_(Number.isFinite(value), "a number is not finite");
  if (value === null || typeof value !== "object") return 0;
  const names = Array.isArray(value) ? [] : Object.keys(value);
  require_(names.every((name) => name.isWellFormed()), "a text is not Unicode");
  return Object.values(value).reduce((sum, inner) => sum + countedNames(inner), names.length);
}

function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const names = Object.keys(value).sort(); // by UTF-16 code units, as the RFC has it
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(",")}}`;
}

function fields(value, ...names) {
  require_(value !== null && typeof value === "object" && !Array.isArray(value), "a document has not its form");
  require_(names.every((name) => Object.hasOwn(value, name)), "a document lacks a field");
  return value;
}

function lines(content) {
  require_(content.endsWith("\n"), "the last line has no end");
  return content.slice(0, -1).split("\n");
}

// ---- Digests and the tree (docs/audit.md, RFC 6962, RFC 9162) ----

function tagged(tag, ...parts) {
  const all = [utf8(tag), Uint8Array.of(0)];
  for (const part of parts) {
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(part.length));
    all.push(new Uint8Array(length.buffer), part);
  }
  return hex(sha256(joined(...all)));
}

const leafHash = (entry) => sha256(joined(Uint8Array.of(0), entry));
const nodeHash = (left, right) => sha256(joined(Uint8Array.of(1), left, right));
const even = (number) => number % 2 === 0; // places go beyond 32 bits, where & does not
const half = (number) => Math.floor(number / 2);

// Goes up a path from `start`; gives what it computes for the older tree and for the newer one.
function climbed(place, last, path, start) {
  let [older, newer] = [start, start];
  for (const sibling of path) {
    require_(last > 0, "a path is too long");
    if (!even(place) || place === last) {
      [older, newer] = [nodeHash(sibling, older), nodeHash(sibling, newer)];
      while (even(place) && place !== 0) [place, last] = [half(place), half(last)];
    } else {
      newer = nodeHash(newer, sibling);
    }
    [place, last] = [half(place), half(last)];
  }
  require_(last === 0, "a path is too short");
  return { older, newer };
}

function requireConsistent(older, newer, path) {
  const sentence = "the log does not extend the kept checkpoint: it was cut, rewritten or forked";
  if (older.size === newer.size) return require_(path.length === 0 && same(older.root, newer.root), sentence);
  if (older.size === 0) return require_(path.length === 0 && same(older.root, sha256(utf8(""))), sentence);
  require_(older.size < newer.size && path.length > 0, sentence);
  const powerOfTwo = Number.isInteger(Math.log2(older.size)) && 2 ** Math.log2(older.size) === older.size;
  const [start, ...rest] = powerOfTwo ? [older.root, ...path] : path;
  let [place, last] = [older.size - 1, newer.size - 1];
  while (!even(place)) [place, last] = [half(place), half(last)];
  const found = climbed(place, last, rest, start);
  require_(same(found.older, older.root) && same(found.newer, newer.root), sentence);
}

// ---- Keys, notes, checkpoints (docs/proofs.md, C2SP) ----

const [LOG, WITNESS] = [1, 4];
const NAME = "[^\\s+]{1,200}";

function readKey(content) {
  const form = new RegExp(`^(${NAME})\\+([0-9a-f]{8})\\+(\\S+)$`, "u").exec(content.trim());
  require_(form, "a key is not written as name+id+base64");
  const [, name, digits, encoded] = form;
  const bytes = unbase64(encoded);
  const id = hex(sha256(joined(utf8(`${name}\n`), bytes)).slice(0, 4));
  require_(bytes.length === 33 && [LOG, WITNESS].includes(bytes[0]) && id === digits, "a key is none");
  return { name, kind: bytes[0], bytes: bytes.slice(1), id, text: content.trim() };
}

function readNote(content) {
  require_(typeof content === "string", "a signed note is no text");
  const gap = content.lastIndexOf("\n\n");
  require_(gap > 0 && content.endsWith("\n"), "a signed note is a text, an empty line and signatures");
  require_(!/[\u0000-\u0009\u000b-\u001f]/.test(content), "a signed note holds control characters");
  const signatures = lines(content.slice(gap + 2)).map((line) => {
    const form = new RegExp(`^— (${NAME}) (\\S+)$`, "u").exec(line);
    require_(form, "a line of signature has not its form");
    const bytes = unbase64(form[2]);
    require_(bytes.length > 4, "a line of signature has not its form");
    return { name: form[1], id: hex(bytes.slice(0, 4)), content: bytes.slice(4) };
  });
  require_(signatures.length <= 100, "a signed note has too many signatures");
  return { text: content.slice(0, gap + 1), signatures };
}

// Whether a key signed the note; one signature under its name that does not hold spoils the note.
function signedBy(note, key) {
  const mine = note.signatures.filter(({ name, id }) => name === key.name && id === key.id);
  for (const { content } of mine) {
    let [message, signature] = [note.text, content];
    if (key.kind === WITNESS) {
      require_(content.length === 72, "a signature does not hold");
      const seconds = new DataView(content.buffer, content.byteOffset).getBigUint64(0);
      [message, signature] = [`cosignature/v1\ntime ${seconds}\n${note.text}`, content.slice(8)];
    }
    require_(signatureHolds(key.bytes, utf8(message), signature), "a signature does not hold");
  }
  return mine.length > 0;
}

function readCheckpoint(note) {
  const [origin, size, root] = note.text.split("\n");
  require_(origin && /^(0|[1-9][0-9]{0,15})$/.test(size) && root, "this is no checkpoint");
  require_(Number(size) <= 2 ** 53 && unbase64(root).length === 32, "this is no checkpoint");
  return { origin, size: Number(size), root: unbase64(root) };
}

// The trusted key and those that followed it, by notes in which each names the next.
function reachable(trusted, rotations) {
  const keys = [trusted];
  const notes = rotations.map(readNote).map((note) => ({ note, next: readKey(note.text.split("\n")[2] ?? "") }));
  for (;;) {
    const key = keys[keys.length - 1];
    const following = notes.find(({ note, next }) => {
      const expected = `isuit-key-rotation/1\n${next.name}\n${next.text}\n`;
      const known = keys.some((earlier) => earlier.text === next.text);
      return next.name === key.name && note.text === expected && !known && key.kind === LOG && signedBy(note, key);
    });
    if (!following) return keys;
    keys.push(following.next);
  }
}

function checkProof(proof, trusted = null, kept = null) {
  fields(proof, "format", "checkpoint", "key", "rotations", "inclusion", "consistency");
  require_(proof.format === "isuit-proof/1" && Array.isArray(proof.rotations), "this is no proof");
  const [key, note] = [readKey(proof.key), readNote(proof.checkpoint)];
  const keys = trusted === null ? [key] : reachable(trusted, proof.rotations);
  const signed = keys.some((known) => known.text === key.text) && key.kind === LOG && signedBy(note, key);
  require_(signed, "the checkpoint is not signed by the trusted key nor by one that followed it");
  const checkpoint = readCheckpoint(note);
  require_(checkpoint.origin === key.name, "the checkpoint is one of another log");
  const event = proof.inclusion === null ? null : includedEvent(proof.inclusion, checkpoint);
  if (kept !== null) {
    const [oldNote, given] = [readNote(kept), proof.consistency];
    const older = readCheckpoint(oldNote);
    require_(older.origin === checkpoint.origin, "the kept checkpoint is one of another log");
    const known = keys.some((signer) => signer.kind === LOG && signedBy(oldNote, signer));
    require_(known, "the kept checkpoint is not signed by the trusted key nor by one that followed it");
    require_(given !== null && given.old_size === older.size, "the proof is not about the kept checkpoint");
    requireConsistent(older, checkpoint, given.path.map(unhex));
  }
  return { event, ...checkpoint };
}

function includedEvent(given, checkpoint) {
  const { index, entry, path } = fields(given, "index", "entry", "path");
  require_(Number.isInteger(index) && index >= 0 && index < checkpoint.size, "an event's place is none");
  const { newer } = climbed(index, checkpoint.size - 1, path.map(unhex), leafHash(utf8(entry)));
  require_(same(newer, checkpoint.root), "the event is not in the log that was signed");
  const event = fields(json(entry), "kind", "payload", "sequence");
  require_(event.sequence === index + 1, "the event has not the number of its place");
  fields(event.payload);
  return event;
}

// ---- Documents ----

const FLOATS = new Set(
  ("latitude longitude metric metric_lower metric_upper difficulty difficulty_se expert_difficulty").split(" "),
);

// A binary64 as releases and curves write it: the shortest digits that read back, always with a point or an exponent.
function floatText(number) {
  if (Object.is(number, -0)) return "-0.0";
  const form = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(number.toExponential());
  const [sign, digits, exponent] = [form[1], form[2] + (form[3] ?? ""), Number(form[4])];
  if (exponent < -4 || exponent >= 16) {
    const power_ = `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
    return `${sign}${digits[0]}${digits.length > 1 ? "." : ""}${digits.slice(1)}e${power_}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  return `${sign}${digits.slice(0, exponent + 1).padEnd(exponent + 1, "0")}.${digits.slice(exponent + 1) || "0"}`;
}

function rowLine(row, names) {
  const cell = (name) => (FLOATS.has(name) && row[name] !== null ? floatText(row[name]) : JSON.stringify(row[name]));
  return `{${names.map((name) => `${JSON.stringify(name)}:${cell(name)}`).join(",")}}\n`;
}

// The rows and metadata of a page: one element holds both, the rows column by column.
function readPage(content) {
  const mark = '<script type="application/json" id="data">';
  const parts = content.split(mark);
  require_(parts.length === 2 && parts[1].includes("</script>"), "this is no page of a release");
  const { rows, metadata } = fields(json(parts[1].split("</script>")[0]), "rows", "metadata");
  const { names, number, columns } = fields(rows, "names", "number", "columns");
  const unpack = { u1: "getUint8", u2: "getUint16", u4: "getUint32" };
  const codes = Object.fromEntries(
    names.map((name) => {
      const { type, values } = columns[name].codes;
      const [bytes, width] = [unbase64(values), Number(type[1])];
      require_(type in unpack && bytes.length === number * width, "a packed column does not fit its table");
      const view = new DataView(bytes.buffer);
      return [name, Array.from({ length: number }, (_, row) => view[unpack[type]](row * width, true))];
    }),
  );
  const cell = (name, row) => {
    const { distinct } = columns[name];
    require_(codes[name][row] < distinct.length, "a packed column does not fit its table");
    return distinct[codes[name][row]];
  };
  const all = Array.from({ length: number }, (_, row) => Object.fromEntries(names.map((n) => [n, cell(n, row)])));
  return { lines: all.map((row) => rowLine(row, names)), metadata };
}

function readLines(content) {
  const all = lines(content);
  return { lines: all.slice(0, -1).map((line) => `${line}\n`), metadata: json(all[all.length - 1]) };
}

function checkRelease(bytes, trusted = null) {
  const content = text(bytes);
  const { lines: rows, metadata } = content.trimStart().startsWith("<") ? readPage(content) : readLines(content);
  fields(metadata, "metadata", "release", "rows", "digest");
  require_(metadata.metadata === true, "the metadata are missing");
  const digest = hex(sha256(utf8(rows.join(""))));
  require_(digest === metadata.digest && rows.length === metadata.rows, "the rows are not those of the metadata");
  require_(metadata.proof, "the file has no proof that a log holds it");
  const { event, size, origin } = checkProof(metadata.proof, trusted);
  require_(event && event.kind === "release-made", "the proof is about something else");
  const { proof, ...about } = metadata;
  const { payload } = event;
  require_(payload.release === metadata.release, "the proof is about another release");
  require_(payload.digest === digest, "the rows are not those that the log speaks of");
  const aboutDigest = hex(sha256(utf8(canonical(about))));
  require_(payload.metadata_digest === aboutDigest, "the metadata are not those that the log speaks of");
  return `release ${metadata.release}: ${rows.length} rows, event ${event.sequence} of ${size} in the log of ${origin}`;
}

function checkReceipt(bytes, rider, trusted = null) {
  const copy = fields(json(text(bytes)), "receipt", "bindings", "proof");
  require_(rider, "name the ID");
  require_(copy.receipt !== null && copy.proof !== null, "the file was cut short: ask for it again");
  const { event, size } = checkProof(copy.proof, trusted);
  require_(event && event.kind === "rider-erased", "the proof is about something else");
  const logged = fields(event.payload.receipt, "receipt_id", "bindings", "erased_at");
  for (const name of Object.keys(logged)) {
    const [one, two] = [logged[name], copy.receipt[name]].map((value) =>
      name === "erased_at" && typeof value === "string" ? value.replace(/\.?0*Z$/, "Z") : canonical(value ?? null),
    );
    require_(one === two, `the receipt's ${name} is not what the log speaks of`);
  }
  const mine = copy.bindings.map(({ nonce }) => tagged("isuit/receipt-binding/1", unhex(nonce), utf8(rider)));
  require_(mine.some((binding) => logged.bindings.includes(binding)), "this receipt is not about this ID");
  return `the erasure of this ID is event ${event.sequence} of ${size}, receipt ${logged.receipt_id}`;
}

function checkCheckpoint(content, key, witness = null) {
  require_(key, "name the log's key");
  const note = readNote(content);
  const { origin, size, root } = readCheckpoint(note);
  require_(key.kind === LOG && signedBy(note, key), "the note is not signed by the key");
  require_(origin === key.name, "the checkpoint is one of another log");
  if (witness) require_(witness.kind === WITNESS && signedBy(note, witness), "the note is not signed by the witness");
  return `${origin}, ${size} events, root ${hex(root)}`;
}

// ---- A bundle (docs/audit.md) ----

const FILES = ["README.md", "atlas.csv", "cohort.tsv", "fit.json", "log.jsonl"];
const columns = (names) => names.split(" ").map((name) => [...name.split(":"), "VARCHAR"].slice(0, 2));
const RECORD = columns(
  "fit_id cohort_hash activity dimension configuration estimator_version tool_version kind discrimination:DOUBLE " +
    "discrimination_se:DOUBLE log_likelihood:DOUBLE identification promotion held_out parameters diagnostics " +
    "skills:BIGINT commitment result_digest recorded_at:TIMESTAMP",
);
const CURVES = columns(
  "fit_id activity dimension site metric:DOUBLE difficulty:DOUBLE difficulty_se:DOUBLE suitability:DOUBLE",
);
const NULLABLE = new Set("discrimination discrimination_se promotion held_out commitment".split(" "));
const NUMBERS = ["metric", "difficulty", "difficulty_se", "suitability"];
const HEADERS = [["site", ...NUMBERS].join(","), ["site", "dimension", ...NUMBERS].join(",")];

function bits(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return hex(new Uint8Array(view.buffer));
}

function rowsDigest(table, kinds, rows) {
  const header = `[${kinds.map(([name, kind]) => `["${name}", "${kind}"]`).join(", ")}]`;
  const exact = rows.map((row) => JSON.stringify(row.map((cell, i) => (kinds[i][1] === "DOUBLE" && cell !== null ? bits(cell) : cell))));
  // Sorted by their bytes, which is by code points: the default order is that of UTF-16 code units.
  const order = (one, two) => (one.key < two.key ? -1 : Number(one.key > two.key));
  const sorted = exact.map((line) => ({ line: utf8(line), key: hex(utf8(line)) })).sort(order);
  return tagged("isuit/rows/1", utf8(table), utf8(header), ...sorted.map(({ line }) => line));
}

function requireInstant(value) {
  const form = typeof value === "string" ? /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\d{3}Z$/.exec(value) : null;
  require_(form, "a time has not its form");
  const read = new Date(`${form[1]}Z`);
  require_(!Number.isNaN(read.getTime()) && read.toISOString() === `${form[1]}Z`, "a time is none");
}

function readRecord(content) {
  const record = fields(json(content), ...RECORD.map(([name]) => name));
  require_(Object.keys(record).length === RECORD.length, "the record has other fields");
  const types = { VARCHAR: "string", TIMESTAMP: "string", DOUBLE: "number", BIGINT: "number" };
  for (const [name, kind] of RECORD) {
    const fits = typeof record[name] === types[kind] && (kind !== "BIGINT" || Number.isInteger(record[name]));
    require_(fits || (record[name] === null && NULLABLE.has(name)), `the record's ${name} has another type`);
  }
  require_(/^isuit-f1:[0-9a-f]{64}$/.test(record.fit_id), "a fit's id is none");
  require_(/^isuit-c[12]:[0-9a-f]{64}$/.test(record.cohort_hash), "a cohort's hash is none");
  requireInstant(record.recorded_at);
  return record;
}

// CSV in one spelling: a field is quoted where it must be and nowhere else, a number is as `floatText` writes it.
function readCurves(content, record) {
  const field = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\n)/y;
  const table = [[]];
  for (field.lastIndex = 0; field.lastIndex < content.length; ) {
    const form = field.exec(content);
    require_(form, "the curves are no CSV");
    const quoted = form[1].startsWith('"');
    const value = quoted ? form[1].slice(1, -1).replaceAll('""', '"') : form[1];
    require_(!quoted || /[",\r\n]/.test(value), "the curves are not in their one spelling");
    table[table.length - 1].push(value);
    if (form[2] === "\n") table.push([]);
  }
  require_(table.pop().length === 0, "the curves are cut short");
  const [header, ...points] = table;
  require_(header && HEADERS.includes(header.join(",")), "the curves have not their columns");
  const decimal = (digits) => {
    if (digits === "") return null;
    require_(Number.isFinite(Number(digits)) && floatText(Number(digits)) === digits, "a number of the curves is none");
    return Number(digits);
  };
  return points.map((point) => {
    require_(point.length === header.length, "a line of the curves has other fields");
    const [site, ...rest] = point;
    const dimension = header.length === 6 ? rest.shift() || record.dimension : record.dimension;
    return [record.fit_id, record.activity, dimension, site || null, ...rest.map(decimal)];
  });
}

function checkLog(content, head) {
  let previous = "0".repeat(64);
  const events = lines(content).map((line, place) => {
    const event = fields(json(line), "at", "head", "kind", "payload", "previous", "sequence");
    const { head: given, ...entry } = event;
    fields(event.payload);
    requireInstant(event.at);
    const named = Object.keys(entry).length === 5 && typeof event.kind === "string";
    require_(named && event.sequence === place + 1, "an event has not its form or its number");
    const computed = tagged("isuit/log-event/1", utf8(canonical(entry)));
    require_(event.previous === previous && given === computed, "the log is not a chain");
    previous = computed;
    return event;
  });
  require_(previous === head, "the log does not end with the head of the manifest");
  return events;
}

// `files` holds the bytes of every file of the directory by name.
function checkBundle(files) {
  const bytes = (name) => {
    require_(Object.hasOwn(files, name), `${name} is missing`);
    return files[name];
  };
  const manifest = fields(json(text(bytes("manifest.json"))), "files", "log_head", "fit_id", "cohort_hash", "with_cohort");
  const listed = Object.keys(fields(manifest.files));
  require_(listed.every((name) => FILES.includes(name)), "the manifest names files that no bundle has");
  const there = FILES.filter((name) => Object.hasOwn(files, name));
  require_(there.every((name) => listed.includes(name)), "a file is not in the manifest");
  for (const name of listed) {
    require_(hex(sha256(bytes(name))) === manifest.files[name], `${name} is not as the manifest says`);
  }
  const record = readRecord(text(bytes("fit.json")));
  const curves = readCurves(text(bytes("atlas.csv")), record);
  const events = checkLog(text(bytes("log.jsonl")), manifest.log_head);
  const fit = record.fit_id;
  const at = record.recorded_at.replace(/(\.000000)?Z$/, "");
  const row = RECORD.map(([name]) => (name === "recorded_at" ? at : record[name]));
  const digests = {
    "ledger.fits": { [fit]: rowsDigest("ledger.fits", RECORD, [row]) },
    "atlas.difficulty": { [fit]: rowsDigest("atlas.difficulty", CURVES, curves) },
  };
  const logged = events
    .filter(({ kind, payload }) => kind === "fit-recorded" && fields(payload, "fit_id").fit_id === fit)
    .map(({ payload }) => fields(payload, "rows_digest").rows_digest);
  require_(canonical(logged) === canonical([digests]), "the record or the curves are not those that the log speaks of");
  const named = manifest.fit_id === fit && manifest.cohort_hash === record.cohort_hash;
  require_(named && manifest.with_cohort === there.includes("cohort.tsv"), "the manifest is about another bundle");
  if (manifest.with_cohort) {
    const digest = hex(sha256(bytes("cohort.tsv")));
    require_(record.cohort_hash.split(":")[1] === digest, "the cohort does not have its hash");
  }
  return `${fit}, log head ${manifest.log_head}`;
}

// ---- Whatever it is ----

// Finds out what the files are and checks them; options are texts: key, kept, witness, id.
function check(files, options = {}) {
  const key = options.key ? readKey(options.key) : null;
  if (Object.hasOwn(files, "manifest.json")) return checkBundle(files);
  const [[, bytes]] = Object.entries(files);
  const content = text(bytes).trimStart();
  if (content.startsWith("isuit/")) {
    return checkCheckpoint(text(bytes), key, options.witness ? readKey(options.witness) : null);
  }
  if (content.startsWith("<") || !/^\{\s*"(format|receipt)"/.test(content)) return checkRelease(bytes, key);
  if (/^\{\s*"receipt"/.test(content)) return checkReceipt(bytes, options.id, key);
  return proofSentence(checkProof(json(text(bytes)), key, options.kept ?? null));
}

function proofSentence({ event, size, origin }) {
  const about = event ? `${event.kind}, event ${event.sequence} of ${size}` : `${size} events`;
  return `${about} in the log of ${origin}`;
}

// What a check says: {holds, sentence}. A document of any form gives a sentence and never an exception.
function told(checking) {
  try {
    return { holds: true, sentence: checking() };
  } catch (error) {
    const known = error instanceof Wrong;
    return { holds: false, sentence: `wrong: ${known ? error.message : `it cannot be read (${error.name})`}` };
  }
}

function main(given) {
  const fs = require("node:fs");
  const path = require("node:path");
  const [kind, ...rest] = given;
  const [paths, options] = [[], {}];
  let each = false; // one line of standard output for every file, whatever it says
  while (rest.length) {
    const word = rest.shift();
    if (["--key", "--kept", "--witness", "--id"].includes(word)) options[word.slice(2)] = rest.shift();
    else if (word === "--each") each = true;
    else paths.push(word);
  }
  const read = (file) => new Uint8Array(fs.readFileSync(file));
  const option = (name) => (options[name] === undefined ? null : text(read(options[name])));
  const directory = (folder) =>
    Object.fromEntries(["manifest.json", ...FILES].filter((name) => fs.existsSync(path.join(folder, name))).map((name) => [name, read(path.join(folder, name))]));
  const keyOf = (name) => (option(name) === null ? null : readKey(option(name)));
  const kinds = {
    bundle: (file) => checkBundle(directory(file)),
    release: (file) => checkRelease(read(file), keyOf("key")),
    receipt: (file) => checkReceipt(read(file), options.id, keyOf("key")),
    proof: (file) => proofSentence(checkProof(json(text(read(file))), keyOf("key"), option("kept"))),
    checkpoint: (file) => checkCheckpoint(text(read(file)), keyOf("key"), keyOf("witness")),
  };
  if (!Object.hasOwn(kinds, kind ?? "") || paths.length === 0) {
    console.error("usage: node verify.js bundle|release|receipt|proof|checkpoint FILE... [--key FILE] [--kept FILE] [--witness FILE] [--id ID]");
    return 2;
  }
  const answers = paths.map((file) => told(() => kinds[kind](file)));
  for (const { holds, sentence } of answers) (holds || each ? console.log : console.error)(sentence);
  return answers.every(({ holds }) => holds) ? 0 : 1;
}

if (typeof module !== "undefined") {
  module.exports = { Wrong, check, checkBundle, checkCheckpoint, checkProof, checkReceipt, checkRelease, canonical, floatText, json, readKey, requireConsistent, sha256, sha512, signatureHolds, told, hex };
  if (require.main === module) process.exitCode = main(process.argv.slice(2));
}
