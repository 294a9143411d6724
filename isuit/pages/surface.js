// A fit of several metrics: for each pair of them a contour map with slices, and then everything that its record knows.
const maps = data.maps.map((map) => ({
  ...map,
  difficulty: Float32Array.from(unpacked(map.difficulty), (value) => value * data.unit),
  se: Float32Array.from(unpacked(map.se), (value) => value * data.unit),
  supported: unpacked(map.supported),
}));
const points = maps[0].x.length, LINES = 9;
const metricOf = (k, value) => `${data.quantities[k]} ${number(value, 3)}${data.units[k] ? ` ${data.units[k]}` : ""}`;
const tellValue = (map, i) => (map.supported[i] ? `${signed(map.difficulty[i])} (${signed(map.difficulty[i] - Z95 * map.se[i])} to ${signed(map.difficulty[i] + Z95 * map.se[i])})` : look.words.nothing);

let chosen = data.first;
const at = maps.map((map) => [nearest(map.x, data.reference[map.pair[0]]), nearest(map.y, data.reference[map.pair[1]])]);

// Round levels between the lowest and the highest difficulty that are supported.
function levelsOf(map) {
  let low = Infinity, high = -Infinity;
  map.difficulty.forEach((value, i) => { if (map.supported[i]) { low = Math.min(low, value); high = Math.max(high, value); } });
  return low > high ? { low: 0, high: 1, lines: [] } : { low, high: Math.max(high, low + 1e-6), lines: ticks(low, high, LINES) };
}

// The line of one level through the grid, cell by cell (marching squares); not where a corner is unsupported.
function contour(map, level, x, y) {
  let text = "";
  const value = (i, j) => map.difficulty[i * points + j] - level;
  for (let i = 0; i + 1 < points; i++) for (let j = 0; j + 1 < points; j++) {
    const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
    if (!corners.every(([a, b]) => map.supported[a * points + b])) continue;
    const crossed = [];
    corners.forEach(([a, b], k) => {
      const [c, d] = corners[(k + 1) % 4], one = value(a, b), two = value(c, d);
      if ((one < 0) !== (two < 0)) { const part = one / (one - two); crossed.push([x(map.x[a] + part * (map.x[c] - map.x[a])), y(map.y[b] + part * (map.y[d] - map.y[b]))]); }
    });
    for (let k = 0; k + 1 < crossed.length; k += 2) text += `M${crossed[k].map((v) => v.toFixed(1)).join(",")}L${crossed[k + 1].map((v) => v.toFixed(1)).join(",")}`;
  }
  return text;
}

const picture = drawing("svg", { class: "picture contour", tabindex: "0", role: "img", id: "contour" });
const readout = element("output", { class: "readout", "aria-live": "polite", id: "contour-readout" });
const legend = element("div", { class: "legend", id: "contour-legend" });
let scale = null;

function drawMap() {
  const map = maps[chosen], width = picture.clientWidth || 300, height = picture.clientHeight || 300;
  const box = { left: 62, right: width - 10, top: 8, bottom: height - 40 };
  const [x0, x1] = [map.x[0], map.x[points - 1]], [y0, y1] = [map.y[0], map.y[points - 1]];
  const x = (value) => box.left + ((value - x0) / (x1 - x0)) * (box.right - box.left);
  const y = (value) => box.bottom - ((value - y0) / (y1 - y0)) * (box.bottom - box.top);
  scale = { box, x, y };
  const { low, high, lines } = levelsOf(map);
  const wide = (box.right - box.left) / (points - 1), tall = (box.bottom - box.top) / (points - 1);
  // One path for each colour: 1,681 rectangles would be slow to draw.
  const shades = Array.from({ length: 24 }, () => "");
  let nowhere = "";
  for (let i = 0; i < points; i++) for (let j = 0; j < points; j++) {
    const k = i * points + j;
    const left = clamp(x(map.x[i]) - wide / 2, box.left, box.right), right = clamp(x(map.x[i]) + wide / 2, box.left, box.right);
    const top = clamp(y(map.y[j]) - tall / 2, box.top, box.bottom), bottom = clamp(y(map.y[j]) + tall / 2, box.top, box.bottom);
    const cell = `M${left.toFixed(1)},${top.toFixed(1)}H${(right + 0.4).toFixed(1)}V${(bottom + 0.4).toFixed(1)}H${left.toFixed(1)}Z`;
    if (map.supported[k]) shades[Math.min(23, Math.floor(((map.difficulty[k] - low) / (high - low)) * 24))] += cell;
    else nowhere += cell;
  }
  const parts = [drawing("path", { class: "shade", d: nowhere || "M0,0", id: "unsupported" })];
  shades.forEach((d, k) => { if (d) parts.push(drawing("path", { class: "cells", d, style: `fill:${colourOf(k / 23)}` })); });
  lines.forEach((level) => parts.push(drawing("path", { class: "isoline", d: contour(map, level, x, y) || "M0,0", "data-level": level }, drawing("title", {}, signed(level)))));
  for (const value of ticks(y0, y1, 6)) parts.push(drawing("text", { class: "tick", x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, number(value)));
  for (const value of ticks(x0, x1, 8)) parts.push(drawing("text", { class: "tick", x: x(value), y: box.bottom + 16, "text-anchor": "middle" }, number(value)));
  const [i, j] = at[chosen];
  parts.push(drawing("line", { class: "condition", x1: x(map.x[i]), x2: x(map.x[i]), y1: box.top, y2: box.bottom }));
  parts.push(drawing("line", { class: "condition", x1: box.left, x2: box.right, y1: y(map.y[j]), y2: y(map.y[j]) }));
  parts.push(drawing("text", { class: "axis", x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, data.axes[map.pair[0]]));
  parts.push(drawing("text", { class: "axis", transform: `translate(11 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, data.axes[map.pair[1]]));
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.replaceChildren(...parts);
  picture.setAttribute("aria-label", `${data.value} over ${data.axes[map.pair[0]]} and ${data.axes[map.pair[1]]}, from ${signed(low)} to ${signed(high)}`);
  const ramp = `linear-gradient(to right, ${Array.from({ length: 7 }, (_, k) => colourOf(k / 6)).join(", ")})`;
  legend.replaceChildren(signed(low), element("span", { class: "ramp", style: `background:${ramp}` }), element("span", {}, signed(high)), element("span", {}, `${data.value}; lines at ${lines.map((level) => signed(level)).join(", ")}; grey: fewer riders than the gate asks for met both`));
  tell(i, j);
}

function tell(i, j) {
  const map = maps[chosen];
  readout.replaceChildren(
    element("span", { class: "where" }, `${metricOf(map.pair[0], map.x[i])}, ${metricOf(map.pair[1], map.y[j])}`),
    element("span", { class: "told" }, `${data.value} `, element("b", {}, tellValue(map, i * points + j))),
  );
}
function under(event) {
  const { box } = scale, place = picture.getBoundingClientRect();
  const share = (value, low, high) => clamp(Math.round(((value - low) / (high - low)) * (points - 1)), 0, points - 1);
  return [share(event.clientX - place.left, box.left, box.right), share(event.clientY - place.top, box.bottom, box.top)];
}
picture.addEventListener("pointermove", (event) => { if (scale) tell(...under(event)); });
picture.addEventListener("pointerleave", () => tell(...at[chosen]));
picture.addEventListener("click", (event) => move(...under(event)));
picture.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (!step) return;
  event.preventDefault();
  move(at[chosen][0] + step[0], at[chosen][1] + step[1]);
});

// Slices: along each metric of the pair, at the other's slider.
const sliders = [0, 1].map((which) => {
  const input = element("input", { type: "range", min: 0, max: points - 1, step: 1, id: `slice-${which}` });
  const told = element("output", { for: `slice-${which}`, id: `slice-${which}-value` }), label = element("label", { for: `slice-${which}` });
  input.addEventListener("input", () => { const next = [...at[chosen]]; next[which] = Number(input.value); move(...next); });
  return { input, told, label, node: element("div", { class: "control" }, label, input, told) };
});
const slices = [0, 1].map((which) => chart({
  id: `slice-${which}-chart`, x: "", y: data.value, form: (value) => signed(value), formY: (value) => signed(value, 1),
  formX: (value) => number(Number(value.toPrecision(3))),
  label: () => `${data.value} along ${data.axes[maps[chosen].pair[which]]}`,
}));
const sliceTitles = [0, 1].map((which) => element("h3", { id: `slice-${which}-title` }));
function drawSlices() {
  const map = maps[chosen];
  slices.forEach((slice, which) => {
    const own = which ? map.y : map.x, other = at[chosen][1 - which];
    const index = own.map((_, k) => (which ? other * points + k : k * points + other));
    const of = (value) => index.map((k) => (map.supported[k] ? value(k) : NaN));
    sliceTitles[which].replaceChildren(`Along ${data.axes[map.pair[which]]}, at ${metricOf(map.pair[1 - which], (which ? map.x : map.y)[other])}`);
    slice.show({
      domain: [own[0], own[own.length - 1]], cursor: own[at[chosen][which]],
      series: [{ name: look.words.band, colour: "var(--accent)", x: own, y: of((k) => map.difficulty[k]), lower: of((k) => map.difficulty[k] - Z95 * map.se[k]), upper: of((k) => map.difficulty[k] + Z95 * map.se[k]) }],
    });
  });
}

const choices = element("div", { class: "modes", role: "group", "aria-label": "Pair of metrics" }, ...maps.map((map, k) => {
  const button = element("button", { type: "button", class: "pair", "data-pair": k }, map.pair.map((m) => data.quantities[m]).join(" and "));
  button.addEventListener("click", () => choose(k));
  return button;
}));
function move(i, j) {
  at[chosen] = [clamp(i, 0, points - 1), clamp(j, 0, points - 1)];
  update();
}
function choose(k) { chosen = k; update(); }
function update() {
  const map = maps[chosen];
  [...choices.children].forEach((button, k) => button.setAttribute("aria-pressed", String(k === chosen)));
  sliders.forEach(({ input, told, label }, which) => {
    input.value = at[chosen][which];
    label.replaceChildren(data.quantities[map.pair[which]]);
    told.replaceChildren(metricOf(map.pair[which], (which ? map.y : map.x)[at[chosen][which]]));
  });
  drawMap();
  drawSlices();
  writeAddress([["pair", chosen === data.first ? null : String(chosen)], ["x", String(at[chosen][0])], ["y", String(at[chosen][1])]]);
}

main.append(
  element("h1", {}, data.title),
  element("p", { class: "lead" }, data.summary),
  element("div", { class: "card notice" }, "In-house: this surface has full precision, and a fit of several metrics is not released."),
  card({ title: "Two metrics together", id: "surface" }, maps.length > 1 ? choices : null, data.held ? element("p", { class: "soft" }, data.held) : null,
    element("div", { class: "chart" }, picture, legend, readout), ...sliders.map(({ node }) => node)),
  card({ title: "Slices", id: "slices" }, element("div", { class: "beside" }, ...slices.map((slice, which) => element("div", {}, sliceTitles[which], slice.node)))),
  element("div", { class: "grid2" }, ...data.sections.map(section)),
);
const asked = readAddress();
if (asked.has("pair") && maps[Number(asked.get("pair"))]) chosen = Number(asked.get("pair"));
if (asked.has("x") && asked.has("y")) at[chosen] = [asked.get("x"), asked.get("y")].map((value) => clamp(Math.round(Number(value)) || 0, 0, points - 1));
update();
whenResized(picture.parentElement, drawMap);
sectionCharts.forEach((draw) => draw());
