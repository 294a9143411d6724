// One release: a map of its cells, and the curve of the chosen one. Everything here is in the released rows.
const topics = [...new Set(data.rows.map((row) => JSON.stringify([row.activity, row.dimension])))].map((topic) => JSON.parse(topic));
let topic = topics[0];
let cell = null;
let bin = ""; // the metric by which the map is coloured; empty: the easiest
let skill = 0;

const rowsOf = (h3) => data.rows.filter((row) => row.activity === topic[0] && row.dimension === topic[1] && row.h3 === h3);
const cells = () => [...new Set(data.rows.filter((row) => row.activity === topic[0] && row.dimension === topic[1]).map((row) => row.h3))];
const estimated = (h3) => rowsOf(h3).filter((row) => row.difficulty !== null);
const units = () => { const row = data.rows.find((r) => r.dimension === topic[1]); return row && row.units ? ` (${row.units})` : ""; };

function level(h3) {
  const found = estimated(h3).filter((row) => bin === "" || row.metric === Number(bin)).map((row) => row.difficulty);
  return found.length ? Math.min(...found) : null;
}

function place(h3) {
  const row = rowsOf(h3)[0];
  return row.latitude === null ? "everywhere" : `${row.latitude.toFixed(2)}, ${row.longitude.toFixed(2)}`;
}

function drawMap() {
  const placed = cells().filter((h3) => data.shapes[h3]);
  document.getElementById("map-card").style.display = placed.length ? "" : "none";
  if (!placed.length) return;
  const known = placed.map(level).filter((value) => value !== null);
  const outlines = placed.flatMap((h3) => data.shapes[h3].map((ring) => ({
    x: ring.map((point) => point[0]), y: ring.map((point) => point[1]), mode: "lines", fill: "toself", fillcolor: "#7a519530",
    line: { color: h3 === cell ? "#1f2933" : "#7a5195", width: h3 === cell ? 2 : 1 }, hoverinfo: "skip",
  })));
  const centres = {
    x: placed.map((h3) => rowsOf(h3)[0].longitude), y: placed.map((h3) => rowsOf(h3)[0].latitude), mode: "markers", customdata: placed,
    marker: {
      size: placed.map((h3) => (h3 === cell ? 19 : 13)), color: placed.map((h3) => { const value = level(h3); return value === null ? "#cbd2d9" : value; }),
      colorscale: "Viridis", cmin: Math.min(...known), cmax: Math.max(...known), showscale: known.length > 1, line: { color: "#1f2933", width: placed.map((h3) => (h3 === cell ? 2.5 : 0.8)) },
      colorbar: { title: { text: "difficulty" }, thickness: 12 },
    },
    text: placed.map((h3) => { const value = level(h3); return `${place(h3)}<br>${value === null ? "no difficulty here" : `difficulty ${value.toFixed(2)}`}<br>${rowsOf(h3)[0].contributors} riders`; }),
    hovertemplate: "%{text}<extra></extra>",
  };
  const middle = centres.y.reduce((sum, value) => sum + value, 0) / centres.y.length;
  const form = layout("longitude", "latitude");
  form.margin.t = 40; // the colour scale has a title, and the buttons are above it
  const pad = (values, least) => { const low = Math.min(...values), high = Math.max(...values), more = Math.max(least, 0.12 * (high - low)); return [low - more, high + more]; };
  form.xaxis.range = pad(centres.x, 0.2);
  form.yaxis = { ...form.yaxis, range: pad(centres.y, 0.2), scaleanchor: "x", scaleratio: 1 / Math.max(0.1, Math.cos((middle * Math.PI) / 180)) };
  Plotly.react("map", [...outlines, centres], form, CONFIG);
  const map = document.getElementById("map");
  map.removeAllListeners("plotly_click");
  map.on("plotly_click", (event) => { if (event.points[0].customdata) choose(event.points[0].customdata); });
}

function difficultyTraces() {
  const rows = estimated(cell);
  const lines = [{
    x: rows.map((row) => row.metric), y: rows.map((row) => row.difficulty), mode: "lines+markers", name: "difficulty", line: { color: COLOURS[0], shape: "linear" }, marker: { size: 8 },
    error_y: { type: "data", array: rows.map((row) => Z95 * (row.difficulty_se || 0)), color: COLOURS[0] + "90", thickness: 1.5 },
    customdata: rows.map((row) => [row.metric_lower, row.metric_upper, row.difficulty_se === null ? "?" : (Z95 * row.difficulty_se).toFixed(1), row.contributors]),
    hovertemplate: "%{customdata[0]} to %{customdata[1]}: %{y} ± %{customdata[2]}<br>%{customdata[3]} riders<extra></extra>",
  }];
  const expert = rowsOf(cell).filter((row) => row.expert_difficulty !== null);
  if (expert.length) lines.push({ x: expert.map((row) => row.metric), y: expert.map((row) => row.expert_difficulty), mode: "lines", name: "expert", line: { color: "#616e7c", dash: "dot" }, hovertemplate: "expert: %{y}<extra></extra>" });
  return lines;
}

function drawSuitability() {
  const about = data.metadata.metrics.find((metric) => metric.activity === topic[0] && metric.dimension === topic[1]);
  const rows = about && about.discrimination !== null ? estimated(cell) : [];
  Plotly.react("suitability", [{
    x: rows.map((row) => row.metric), y: rows.map((row) => sigmoid(about.discrimination * (skill - row.difficulty))), mode: "lines+markers", name: "suitability",
    line: { color: COLOURS[2] }, marker: { size: 8 }, hovertemplate: "%{x}: %{y:.0%}<extra></extra>",
  }], layout(topic[1] + units(), "P(success)", [0, 1]), CONFIG);
}

function drawCell() {
  document.getElementById("cell-name").textContent = `Cell ${cell} (${place(cell)})`;
  const silent = rowsOf(cell).filter((row) => row.difficulty === null).map((row) => `${row.metric_lower} to ${row.metric_upper}: ${row.status}`);
  document.getElementById("silent").textContent = silent.length ? `Without a number: ${silent.join("; ")}` : "";
  Plotly.react("difficulty", difficultyTraces(), layout(topic[1] + units(), "difficulty (skill sd)"), CONFIG);
  drawSuitability();
}

function choose(h3) {
  cell = h3;
  cellChoice.value = h3;
  drawMap();
  drawCell();
}

function chooseTopic(index) {
  topic = topics[index];
  bin = "";
  const metrics = [...new Set(data.rows.filter((row) => row.activity === topic[0] && row.dimension === topic[1]).map((row) => row.metric))].sort((a, b) => a - b);
  binChoice.replaceChildren(element("option", { value: "" }, "the easiest condition"), ...metrics.map((metric) => element("option", { value: metric }, String(metric))));
  cellChoice.replaceChildren(...cells().map((h3) => element("option", { value: h3 }, `${h3} (${place(h3)})`)));
  choose(cells()[0]);
}

const topicChoice = element("select", { id: "topic" }, ...topics.map(([activity, dimension], index) => element("option", { value: index }, `${activity}: ${dimension}`)));
const binChoice = element("select", { id: "bin" });
const cellChoice = element("select", { id: "cell" });
topicChoice.addEventListener("change", () => chooseTopic(Number(topicChoice.value)));
binChoice.addEventListener("change", () => { bin = binChoice.value; drawMap(); });
cellChoice.addEventListener("change", () => choose(cellChoice.value));

const about = data.metadata;
const policy = Object.entries(about.policy).map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(", ");
main.append(
  element("h1", {}, `Atlas, release ${about.release}`),
  element("p", { class: "lead" }, `How hard conditions are, net of who faced them: ${about.rows} rows in ${about.cells} ${about.cells === 1 ? "cell" : "cells"}.`),
  element("div", { class: "card slider" }, element("label", { for: "topic" }, "Activity"), topicChoice, element("label", { for: "cell" }, "Cell"), cellChoice),
  element("div", { class: "card", id: "map-card" },
    element("div", { class: "slider" }, element("h2", {}, "Cells"), element("label", { for: "bin" }, "coloured by difficulty at"), binChoice),
    element("div", { class: "chart tall", id: "map" })),
  element("div", { class: "card" },
    element("h2", { id: "cell-name" }), element("p", { class: "lead", id: "silent" }),
    element("h2", {}, "Difficulty, with its 95 % band"), element("div", { class: "chart", id: "difficulty" }),
    element("h2", {}, "Suitability for a skill"), skillSlider((value) => { skill = value; drawSuitability(); }),
    element("div", { class: "chart", id: "suitability" })),
  element("div", { class: "card" }, element("h2", {}, "The release"), facts([
    ["Digest", about.digest], ["Observed before", about.observed_before], ["Policy", policy],
    ["Weaker than default", about.weaker_than_default.length ? about.weaker_than_default.join(", ") : null],
    ["Model", about.identification], ["Difficulty is in", about.difficulty_units], ["To join it", about.join],
    ["Licence", about.licence], ["Cite as", about.citation],
  ])),
  element("div", { class: "card" }, element("h2", {}, "Check it"), element("p", {}, "The rows in this page have the digest above; this command computes it again."),
    element("pre", {}, "isuit check-release FILE")),
);
chooseTopic(0);
