// Checks the cases of tests/golden/documents.json with the verifier in JavaScript: one line of JSON for each.

"use strict";

const fs = require("node:fs");
const path = require("node:path");
const verify = require(path.join(__dirname, "..", "..", "verifier", "verify.js"));

const { documents, cases } = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const bytes = (text) => new TextEncoder().encode(text);

for (const { kind, files, edit, id, ...named } of cases) {
  const content = Object.fromEntries(
    files.map((name) => {
      const text = edit?.file === name ? documents[name].split(edit.old).join(edit.new) : documents[name];
      return [name, kind === "bundle" ? bytes(text) : text];
    }),
  );
  const [first] = Object.values(content);
  const key = named.key ? verify.readKey(documents[named.key]) : null;
  const kinds = {
    bundle: () => verify.checkBundle(content),
    release: () => verify.checkRelease(bytes(first), key),
    receipt: () => verify.checkReceipt(bytes(first), id, key),
    proof: () => verify.checkProof(verify.json(first), key, named.kept ? documents[named.kept] : null),
    checkpoint: () => verify.checkCheckpoint(first, key, named.witness ? verify.readKey(documents[named.witness]) : null),
  };
  const { holds, sentence } = verify.told(kinds[kind]);
  console.log(JSON.stringify({ holds, sentence: String(sentence) }));
}
