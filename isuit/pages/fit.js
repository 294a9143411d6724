// One fit: difficulty with its bands, and the suitability of a declared skill, for the sites that are chosen.
const latent = data.discrimination !== null;
const FIRST_SITES = 6; // more lines than that are hard to tell apart at first sight
let skill = 0;

data.curves.forEach((curve, index) => {
  curve.label = curve.site === null ? (data.curves.length > 1 ? "all sites together" : "all outcomes") : curve.site;
  curve.colour = COLOURS[index % COLOURS.length];
  // With sites, what they share is an average of few curves and its band is wide: it is there for who asks for it.
  curve.chosen = data.curves.length === 1 || (index > 0 && index <= FIRST_SITES);
});
const chosen = () => data.curves.filter((curve) => curve.chosen);
const known = (curve) => curve.difficulty !== null;

function difficultyTraces() {
  return chosen().filter(known).flatMap((curve) => [
    band(curve.metric, curve.difficulty.map((d, i) => d - Z95 * curve.se[i]), curve.difficulty.map((d, i) => d + Z95 * curve.se[i]), curve.colour),
    {
      x: curve.metric, y: curve.difficulty, mode: "lines", name: plain(curve.label), line: { color: curve.colour, width: curve.site === null ? 3 : 2 },
      customdata: curve.se.map((se) => Z95 * se),
      hovertemplate: `%{x:.4g}: difficulty %{y:.2f} ± %{customdata:.2f}<extra>${plain(curve.label)}</extra>`,
    },
  ]);
}

function suitabilityOf(curve) {
  return latent && known(curve) ? curve.difficulty.map((d) => sigmoid(data.discrimination * (skill - d))) : curve.suitability;
}

function suitabilityTraces() {
  const shared = data.curves.find((curve) => curve.site === null);
  const lines = chosen().filter((curve) => !latent || known(curve)).map((curve) => ({
    x: curve.metric, y: suitabilityOf(curve), mode: "lines", name: plain(curve.label), line: { color: curve.colour, width: curve.site === null ? 3 : 2 },
    hovertemplate: `%{x:.4g}: %{y:.1%}<extra>${plain(curve.label)}</extra>`,
  }));
  if (latent && shared) lines.push({
    x: shared.metric, y: shared.suitability, mode: "lines", name: "the population", line: { color: "#616e7c", width: 1.5, dash: "dot" },
    hovertemplate: "%{x:.4g}: %{y:.1%}<extra>the population</extra>",
  });
  return lines;
}

function draw() {
  if (latent) Plotly.react("difficulty", difficultyTraces(), layout(data.dimension, "difficulty (skill sd)"), CONFIG);
  Plotly.react("suitability", suitabilityTraces(), layout(data.dimension, "P(success)", [0, 1]), CONFIG);
}

function siteChoice() {
  const box = element("div", { class: "choices", id: "sites" });
  for (const curve of data.curves) {
    const input = element("input", { type: "checkbox", value: curve.site === null ? "" : curve.site });
    input.checked = curve.chosen;
    input.addEventListener("change", () => { curve.chosen = input.checked; draw(); });
    const swatch = element("span", { class: "swatch", style: `background:${curve.colour}` });
    box.append(element("label", {}, input, swatch, curve.label + (latent && !known(curve) ? " (not comparable)" : "")));
  }
  return box;
}

const charts = element("div", { class: "card" });
if (latent) {
  charts.append(
    element("h2", {}, "Difficulty, with its 95 % band"), element("div", { class: "chart", id: "difficulty" }),
    element("h2", {}, "Suitability for a skill"),
    skillSlider((value) => { skill = value; Plotly.react("suitability", suitabilityTraces(), layout(data.dimension, "P(success)", [0, 1]), CONFIG); }),
    element("p", { class: "lead" }, "The slider moves these curves. It does not move difficulty, which is a property of the condition. Dotted: the population."),
  );
} else {
  charts.append(element("h2", {}, "Suitability of the population"), element("p", { class: "lead" }, "This fit is a single curve: skill and difficulty could not be told apart, for the reasons listed under the gate."));
}
charts.append(element("div", { class: "chart", id: "suitability" }));

const commands = element("pre", { id: "rederive" }, data.commands.join("\n"));
main.append(
  element("h1", {}, `${data.activity}: ${data.dimension}`),
  element("p", { class: "lead" }, data.summary),
  element("div", { class: "card notice" }, "In-house: these curves have full precision. ", element("code", {}, "isuit export-atlas"), " makes what can be published."),
  data.curves.length > 1
    ? element("div", { class: "columns" }, element("div", { class: "card" }, element("h2", {}, "Sites"), siteChoice()), charts)
    : charts,
  element("div", { class: "card" }, element("h2", {}, "The fit"), facts(data.facts)),
  element("div", { class: "card" }, element("h2", {}, "Identification and promotion"), facts(data.gate)),
);
if (data.calibration) {
  main.append(element("div", { class: "card" }, element("h2", {}, "Calibration: what was predicted, and what happened"), element("div", { class: "chart", id: "calibration" })));
}
main.append(element("div", { class: "card" }, element("h2", {}, "Derive it again"), element("p", {}, data.how), commands));
draw();
if (data.calibration) {
  const { predicted, observed, outcomes } = data.calibration;
  Plotly.newPlot("calibration", [
    { x: [0, 1], y: [0, 1], mode: "lines", line: { color: "#9aa5b1", dash: "dot" }, hoverinfo: "skip" },
    {
      x: predicted, y: observed, mode: "markers+lines", line: { color: COLOURS[0] }, marker: { size: 9 }, customdata: outcomes,
      hovertemplate: "predicted %{x:.1%}, observed %{y:.1%}, %{customdata} outcomes<extra></extra>",
    },
  ], layout("predicted", "observed", [-0.03, 1.03]), CONFIG);
}
