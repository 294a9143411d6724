// docs/canonical-form.md in JavaScript, written from that page and sharing nothing with isuit.
// Reads one cohort per line of standard input, as JSON, and answers each with a line: the cohort hash.
// An outcome is [rider, site or null, observed_at as ISO 8601 text with an offset or null, metric as decimal text
// or several as an object by their names, outcome].

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

// By UTF-8 bytes: the default order of texts is that of UTF-16 code units.
const names = (metric) => Object.keys(metric).sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

function line([rider, site, observedAt, metric, outcome]) {
  const metrics = typeof metric === "object" ? names(metric).map((name) => metric[name]) : [metric];
  const time = observedAt === null ? "" : instant(observedAt);
  const fields = [rider, site ?? "", time, ...metrics.map(bits), outcome ? "1" : "0"];
  return Buffer.from(fields.join("\t") + "\n", "utf8");
}

export function cohortHash(outcomes) {
  const digest = createHash("sha256");
  const several = typeof outcomes[0][3] === "object" && names(outcomes[0][3]).length > 1;
  const form = several ? "isuit-c2" : "isuit-c1";
  const columns = ["rider", "site", "observed_at", ...(several ? names(outcomes[0][3]) : ["metric"]), "outcome"];
  digest.update(`${form}\n${columns.join("\t")}\n${outcomes.length}\n`);
  for (const bytes of outcomes.map(line).sort(Buffer.compare)) digest.update(bytes);
  return `${form}:` + digest.digest("hex");
}

for await (const cohort of createInterface({ input: process.stdin })) {
  process.stdout.write(cohortHash(JSON.parse(cohort)) + "\n");
}
