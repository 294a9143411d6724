// docs/canonical-form.md in JavaScript, written from that page and sharing nothing with isuit.
// Reads one cohort per line of standard input, as JSON, and answers each with a line: the cohort hash.
// An outcome is [rider, site or null, observed_at as ISO 8601 text with an offset or null, metric as decimal text, outcome].

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";

const ISO = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|([+-])(\d\d):(\d\d))$/;

function instant(text) {
  const [, year, month, day, hour, minute, second, fraction = "", sign, hours = 0, minutes = 0] = ISO.exec(text);
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day)); // Date.UTC would read the year 50 as 1950
  date.setUTCHours(Number(hour), Number(minute), Number(second));
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  const utc = new Date(date.getTime() + (sign === "-" ? offset : -offset));
  return utc.toISOString().slice(0, 19) + "." + fraction.padEnd(6, "0") + "Z";
}

function bits(metric) {
  const bytes = Buffer.alloc(8);
  const number = Number(metric);
  bytes.writeDoubleBE(number === 0 ? 0 : number);
  return bytes.toString("hex");
}

function line([rider, site, observedAt, metric, outcome]) {
  const fields = [rider, site ?? "", observedAt === null ? "" : instant(observedAt), bits(metric), outcome ? "1" : "0"];
  return Buffer.from(fields.join("\t") + "\n", "utf8");
}

export function cohortHash(outcomes) {
  const digest = createHash("sha256");
  digest.update(`isuit-c1\nrider\tsite\tobserved_at\tmetric\toutcome\n${outcomes.length}\n`);
  for (const bytes of outcomes.map(line).sort(Buffer.compare)) digest.update(bytes);
  return "isuit-c1:" + digest.digest("hex");
}

for await (const cohort of createInterface({ input: process.stdin })) {
  process.stdout.write(cohortHash(JSON.parse(cohort)) + "\n");
}
