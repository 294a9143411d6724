// One release: everything here is in its rows, in its metadata, or in those of the releases before it.
const about = data.metadata;
const rows = (() => {
  const columns = {};
  for (const [name, { distinct, codes }] of Object.entries(data.rows.columns)) { const numbers = unpacked(codes); columns[name] = (r) => distinct[numbers[r]]; }
  const missing = () => null;
  return { number: data.rows.number, of: (name) => columns[name] || missing };
})();
const [activityOf, dimensionOf, cellOf, metricOf] = ["activity", "dimension", "h3", "metric"].map(rows.of);
const topics = data.topics;
const named = topics.findIndex(({ activity, dimension }) => readAddress().get("topic") === `${activity}/${dimension}`);
const topic = topics[Math.max(0, named)];

function outlines() {
  const { cells, counts, offsets, unit } = data.shapes, corners = unpacked(counts), steps = unpacked(offsets), found = new Map();
  let at = 0;
  cells.forEach((cell, i) => { const ring = []; for (let k = 0; k < corners[i]; k++, at += 2) ring.push([steps[at] * unit, steps[at + 1] * unit]); if (ring.length) found.set(cell, ring); });
  return found;
}

function model() {
  const mine = [];
  for (let r = 0; r < rows.number; r++) if (activityOf(r) === topic.activity && dimensionOf(r) === topic.dimension) mine.push(r);
  const x = [...new Set(mine.map(metricOf))].sort((a, b) => a - b), m = x.length, bin = new Map(x.map((value, k) => [value, k]));
  const shapes = outlines(), numbers = new Map(), places = [], first = [];
  const [latitude, longitude, contributors] = ["latitude", "longitude", "contributors"].map(rows.of);
  for (const r of mine) {
    const id = cellOf(r);
    if (numbers.has(id)) continue;
    numbers.set(id, places.length);
    first.push(r);
    const here = { id, latitude: latitude(r), longitude: longitude(r), known: null };
    const offsets = shapes.get(id);
    if (offsets) here.ring = offsets.map(([dx, dy]) => [here.longitude + dx, here.latitude + dy]);
    // The name of a country costs a look at its borders: only for what is shown, and while the reader reads.
    here.where = () => (here.known ??= here.latitude === null ? "everywhere" : whereIs(here.latitude, here.longitude));
    Object.defineProperty(here, "label", { get: () => (here.latitude === null ? "everywhere" : `${here.where()}, ${degrees(here.latitude, here.longitude)}`) });
    here.detail = () => id;
    here.search = here.where;
    places.push(here);
  }
  const n = places.length, difficulty = new Float32Array(n * m), se = new Float32Array(n * m), state = new Uint8Array(n * m).fill(3), a = new Float32Array(n * m).fill(NaN);
  const columns = ["difficulty", "difficulty_se", "status", "discrimination", "expert_difficulty", "metric_lower", "metric_upper"].map(rows.of);
  const [levelOf, errorOf, statusOf, slopeOf, expertOf, lowerOf, upperOf] = columns;
  const expert = new Float32Array(n * m).fill(NaN), edges = new Map();
  for (const r of mine) {
    const k = bin.get(metricOf(r)), at = numbers.get(cellOf(r)) * m + k, level = levelOf(r);
    edges.set(k, [lowerOf(r), upperOf(r)]);
    state[at] = level === null ? Math.max(1, STATES.indexOf(statusOf(r))) : 0;
    if (level !== null) { difficulty[at] = level; se[at] = errorOf(r) ?? 0; }
    if (slopeOf(r) !== null) a[at] = slopeOf(r);
    if (expertOf(r) !== null) expert[at] = expertOf(r);
  }
  // Where the rows do not carry a discrimination, the metadata may; without one there is difficulty, and skill to spare.
  const described = about.metrics.find((metric) => metric.activity === topic.activity && metric.dimension === topic.dimension);
  const slope = described && Number.isFinite(described.discrimination) ? described.discrimination : null;
  if (slope !== null) a.fill(slope);
  const sloped = mine.every((r) => levelOf(r) === null || Number.isFinite(a[numbers.get(cellOf(r)) * m + bin.get(metricOf(r))]));
  const estimated = x.map((_, k) => places.reduce((sum, __, i) => sum + (state[i * m + k] === 0), 0));
  // Begin in the middle of the conditions that nearly all cells have.
  const full = x.map((_, k) => k).filter((k) => estimated[k] >= 0.9 * Math.max(...estimated)), middle = full[Math.floor((full.length - 1) / 2)];
  const warm = (i) => { for (let left = 25; i < n && left; i++, left--) places[i].where(); if (i < n) setTimeout(warm, 20, i); };
  setTimeout(warm, 500, 0);
  return {
    noun: "cell", nouns: "cells", key: "cell", file: `atlas-${about.release}`, places, x, axis: topic.axis, binned: true,
    topic: named > 0 ? `${topic.activity}/${topic.dimension}` : null,
    tellX: (k) => { const [lower, upper] = edges.get(k); return `${topic.quantity} ${number(lower)} to ${number(upper)}${topic.unit ? ` ${topic.unit}` : ""}`; },
    difficulty, se, covariance: null, state, skilled: true, discrimination: sloped ? (i, k) => a[i * m + k] : null, discriminationError: () => 0,
    reference: -1, start: middle, population: null, percentile: normalBelow,
    expert: (chosen) => { const values = chosen.length ? x.map((_, k) => expert[chosen[0] * m + k]) : []; return values.some(Number.isFinite) ? values : null; },
    shades: (skill, chosen) => (chosen.length !== 1 ? [] : x.flatMap((_, k) => { const kind = STATES[state[chosen[0] * m + k]]; return kind === "estimated" ? [] : [{ from: edges.get(k)[0], to: edges.get(k)[1], text: `Shaded: ${look.words[kind]}.` }]; })),
    about(chosen) {
      const silent = (i) => { const kinds = {}; x.forEach((_, k) => { const kind = STATES[state[i * m + k]]; if (kind !== "estimated") (kinds[kind] ||= []).push(`${number(edges.get(k)[0])} to ${number(edges.get(k)[1])}`); }); return Object.entries(kinds).map(([kind, where]) => `${look.words[kind]}: ${where.join(", ")}`); };
      chosenFacts.replaceChildren(...chosen.map((i) => facts([[places[i].label, [`cell ${places[i].id}`, `${contributors(first[i])} riders`, ...silent(i)]]])));
    },
  };
}

const chosenFacts = element("div", { id: "cells" });
const shown = explorer(model());
const choice = element("select", { id: "topic" }, ...topics.map(({ activity, axis }, i) => { const made = element("option", { value: i }, `${activity}: ${axis}`); if (topics[i] === topic) made.selected = true; return made; }));
choice.addEventListener("change", () => {
  const { activity, dimension } = topics[Number(choice.value)];
  history.replaceState(null, "", `#${new URLSearchParams({ topic: `${activity}/${dimension}` })}`);
  location.reload();
});

const past = data.series;
function timeline() {
  if (past.length < 2) return null;
  const rowsOfPast = [...past].reverse().map((each, i, all) => [each.release, each.rows, each.cells, i === all.length - 1 ? "first" : each.added, i === all.length - 1 ? "" : each.changed, i === all.length - 1 ? "" : each.withdrawn]);
  const gone = past.flatMap((each) => each.withdrawn_cells.map((cell) => `${cell} (gone in ${each.release})`));
  const newest = past[past.length - 1];
  const told = `Since ${past[past.length - 2].release}: ${newest.added} rows new, ${newest.changed} changed${newest.largest_change === null ? "" : `, by at most ${number(newest.largest_change, 2)} sd`}, ${newest.withdrawn} withdrawn.`;
  return card({ title: "Releases so far", id: "timeline" }, element("p", {}, told), tableOf(["release", "rows", "cells", "new", "changed", "withdrawn"], rowsOfPast, "Every release of this series, newest first"), gone.length ? element("details", {}, element("summary", {}, `Cells withdrawn: ${gone.length}`), element("p", {}, gone.join(", "))) : null);
}

main.append(
  element("h1", {}, `Atlas, release ${about.release}`),
  element("p", { class: "lead" }, `How hard conditions are, net of who faced them: ${grouped(String(about.rows))} rows in ${grouped(String(about.cells))} ${about.cells === 1 ? "cell" : "cells"}. At least as many riders as the policy asks for stand behind each row.`),
  ...(topics.length > 1 ? [element("div", { class: "card find" }, element("label", { for: "topic" }, "Activity"), choice)] : [element("p", { class: "lead" }, `${topic.activity}: ${topic.axis}`)]),
  shown.controls, ...(shown.places ? [shown.places] : []), shown.curves, card({ title: "The chosen cells", id: "chosen-cells" }, chosenFacts),
  element("div", { class: "grid2" }, ...[
    timeline(),
    card({ title: "The release", id: "release" }, element("p", {}, `Outings before ${about.observed_before}, of at least ${about.policy.k} riders in every cell and bin.`), facts([
      ["Licence", about.licence], ["Cite as", about.citation], ["Difficulty is in", about.difficulty_units], ["Model", about.identification],
      ["Weaker than default", about.weaker_than_default.length ? about.weaker_than_default.join(", ") : null],
    ]), element("details", {}, element("summary", {}, "Policy, digest, and how to join it"), facts([
      ...Object.entries(about.policy).map(([name, value]) => [name.replaceAll("_", " "), String(value)]), ["digest", about.digest], ["to join it", about.join],
    ]))),
    card({ title: "Check it", id: "check" }, element("p", {}, "The rows in this page have the digest above; this command computes it again."), element("pre", {}, "isuit check-release FILE")),
  ].filter((part) => part)),
);
shown.begin();
