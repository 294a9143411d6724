// Lines with bands over a metric, as SVG: colours from the style sheet, a cursor for mouse, finger and arrow keys.

// About so many round numbers between two ends.
function ticks(low, high, about) {
  const raw = (high - low) / about, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

// The points as a path; a gap where a value is not a number.
function path(xs, ys, x, y) {
  let text = "", pen = false;
  for (let i = 0; i < xs.length; i++) {
    if (!Number.isFinite(ys[i])) { pen = false; continue; }
    text += `${pen ? "L" : "M"}${x(xs[i]).toFixed(1)},${y(ys[i]).toFixed(1)}`;
    pen = true;
  }
  return text;
}

// A band between two lines, one closed piece for each run of points that have both.
function ribbon(xs, lower, upper, x, y) {
  let text = "";
  for (let begin = 0; begin < xs.length; begin++) {
    if (!Number.isFinite(lower[begin])) continue;
    let end = begin;
    while (end + 1 < xs.length && Number.isFinite(lower[end + 1])) end++;
    const there = [], back = [];
    for (let i = begin; i <= end; i++) { there.push(`${x(xs[i]).toFixed(1)},${y(upper[i]).toFixed(1)}`); back.unshift(`${x(xs[i]).toFixed(1)},${y(lower[i]).toFixed(1)}`); }
    text += `M${there.join("L")}L${back.join("L")}Z`;
    begin = end;
  }
  return text;
}

// options: id, label (what it shows, for who cannot see it), x and y (axis titles), form (how a value is told), square,
// chosen (called with a metric that was pressed). `show` draws: { series, range, domain, shades, density, cursor }, where
// a series is { name, colour, dash, x, y, lower, upper, marks, errors, area, bare }; of a bare one only the band is drawn and told.
function chart(options) {
  const picture = drawing("svg", { class: "picture", tabindex: "0", role: "img", id: options.id });
  const readout = element("output", { class: "readout", "aria-live": "polite", id: `${options.id}-readout` });
  const node = element("div", { class: options.square ? "chart square" : "chart" }, picture, readout);
  let shown = null, at = null, scale = null;
  const form = options.form || number, formX = options.formX || ((value) => number(value));

  function draw() {
    const width = picture.clientWidth || 300, height = picture.clientHeight || 300;
    if (!shown) return;
    const narrow = width < 480;
    const box = { left: narrow ? 56 : 62, right: width - 10, top: 8, bottom: height - 40 };
    const { series } = shown;
    const [x0, x1] = shown.domain, [y0, y1] = shown.range || extent(series);
    const x = (value) => box.left + ((value - x0) / (x1 - x0 || 1)) * (box.right - box.left);
    const y = (value) => box.bottom - ((value - y0) / (y1 - y0 || 1)) * (box.bottom - box.top);
    scale = { x, y, x0, x1, box };
    const parts = [];
    for (const shade of shown.shades || []) {
      const left = clamp(x(shade.from), box.left, box.right), right = clamp(x(shade.to), box.left, box.right);
      parts.push(drawing("rect", { class: "shade", x: left, y: box.top, width: Math.max(0, right - left), height: box.bottom - box.top }, drawing("title", {}, shade.text)));
    }
    for (const value of ticks(y0, y1, height < 240 ? 4 : 6)) {
      parts.push(drawing("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }));
      parts.push(drawing("text", { class: "tick", x: box.left - 6, y: y(value) + 4, "text-anchor": "end" }, (options.formY || number)(value)));
    }
    for (const value of ticks(x0, x1, narrow ? 4 : 8)) {
      parts.push(drawing("line", { class: "grid", x1: x(value), x2: x(value), y1: box.top, y2: box.bottom }));
      parts.push(drawing("text", { class: "tick", x: x(value), y: box.bottom + 16, "text-anchor": "middle" }, formX(value)));
    }
    for (const bar of shown.density || []) {
      const most = 0.16 * (box.bottom - box.top), left = x(bar.from), right = x(bar.to);
      parts.push(drawing("rect", { class: "density", x: left + 0.5, y: box.bottom - most * bar.height, width: Math.max(0.5, right - left - 1), height: most * bar.height }));
    }
    const clip = `clip-${options.id}`;
    const inside = drawing("g", { "clip-path": `url(#${clip})` });
    parts.push(drawing("clipPath", { id: clip }, drawing("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top })));
    for (const line of series) if (line.lower && !line.errors) inside.append(drawing("path", { class: "band", d: ribbon(line.x, line.lower, line.upper, x, y), style: `fill:${line.colour}` }));
    for (const line of series) {
      if (line.errors) line.x.forEach((value, i) => { if (Number.isFinite(line.lower[i])) inside.append(drawing("line", { class: "error", x1: x(value), x2: x(value), y1: y(line.lower[i]), y2: y(line.upper[i]), style: `stroke:${line.colour}` })); });
      if (!line.points && !line.bare) inside.append(drawing("path", { class: line.thin ? "line thin" : "line", d: path(line.x, line.y, x, y), style: `stroke:${line.colour}`, "stroke-dasharray": line.dash || null }));
      if (line.marks) line.x.forEach((value, i) => { if (Number.isFinite(line.y[i])) inside.append(drawing("circle", { class: "mark", cx: x(value), cy: y(line.y[i]), r: 4, style: `fill:${line.colour}` })); });
    }
    parts.push(inside);
    if (shown.cursor !== undefined && shown.cursor !== null) parts.push(drawing("line", { class: "condition", x1: x(shown.cursor), x2: x(shown.cursor), y1: box.top, y2: box.bottom }));
    parts.push(drawing("line", { class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden" }));
    parts.push(drawing("text", { class: "axis", x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, options.x));
    parts.push(drawing("text", { class: "axis", transform: `translate(11 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, options.y));
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.replaceChildren(...parts);
    picture.setAttribute("aria-label", options.label(shown));
    tell();
  }

  function extent(series) {
    let low = Infinity, high = -Infinity;
    for (const line of series) {
      for (const value of line.y) if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); }
      // A band that is wide at its ends must not flatten the curve: at most as much again as the curve takes.
    }
    if (low > high) return [-1, 1];
    const span = Math.max(high - low, 0.5);
    let below = low, above = high;
    for (const line of series) for (let i = 0; line.lower && i < line.lower.length; i++) {
      if (Number.isFinite(line.lower[i])) { below = Math.min(below, Math.max(line.lower[i], low - 0.6 * span)); above = Math.max(above, Math.min(line.upper[i], high + 0.6 * span)); }
    }
    return [below - 0.04 * span, above + 0.04 * span];
  }

  // The values of every line at the metric under the cursor, or at the page's condition.
  function tell() {
    const value = at === null ? shown.cursor : at;
    const cursor = picture.querySelector(".cursor");
    if (value === undefined || value === null) { readout.replaceChildren(shown.hint || ""); return; }
    if (cursor) { cursor.setAttribute("visibility", at === null ? "hidden" : "visible"); cursor.setAttribute("x1", scale.x(value)); cursor.setAttribute("x2", scale.x(value)); }
    const items = shown.series.filter((line) => line.name).map((line) => {
      const i = nearest(line.x, value);
      const text = !Number.isFinite(line.y[i]) ? look.words.nothing : line.bare ? `${form(line.lower[i])} to ${form(line.upper[i])}` : line.lower && Number.isFinite(line.lower[i]) ? `${form(line.y[i])} (${form(line.lower[i])} to ${form(line.upper[i])})` : form(line.y[i]);
      return element("span", { class: "told" }, element("span", { class: "swatch", style: `background:${line.colour}` }), `${line.name} `, element("b", {}, text));
    });
    const shade = (shown.shades || []).find(({ from, to }) => value >= from && value <= to);
    readout.replaceChildren(element("span", { class: "where" }, `${options.x} ${formX(value)}`), ...items, ...(shade ? [element("span", { class: "told" }, shade.text)] : []));
  }
  function move(event) {
    if (!scale || !shown) return;
    const left = event.clientX - picture.getBoundingClientRect().left;
    at = clamp(scale.x0 + ((left - scale.box.left) / (scale.box.right - scale.box.left)) * (scale.x1 - scale.x0), scale.x0, scale.x1);
    if (shown.series.length) at = shown.series[0].x[nearest(shown.series[0].x, at)];
    tell();
  }
  picture.addEventListener("pointermove", move);
  picture.addEventListener("pointerleave", () => { at = null; if (shown) tell(); });
  picture.addEventListener("click", (event) => { move(event); if (options.chosen && at !== null) options.chosen(at); });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!shown || !shown.series.length) return;
    const { x } = shown.series[0];
    if (step) { at = x[clamp(nearest(x, at === null ? shown.cursor ?? x[0] : at) + step, 0, x.length - 1)]; tell(); event.preventDefault(); }
    if (event.key === "Enter" && at !== null && options.chosen) options.chosen(at);
    if (event.key === "Escape") { at = null; tell(); }
  });
  picture.addEventListener("blur", () => { at = null; if (shown) tell(); });
  whenResized(node, draw);
  return { node, show(next) { shown = next; draw(); }, get shown() { return shown; } };
}

function nearest(xs, value) {
  let best = 0;
  for (let i = 1; i < xs.length; i++) if (Math.abs(xs[i] - value) < Math.abs(xs[best] - value)) best = i;
  return best;
}
