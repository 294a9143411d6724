// One fit: its places, and then everything that its record knows.
const curves = data.curves;
const m = curves.x.length, n = curves.ids.length;

function model() {
  const scaled = (document, unit) => Float32Array.from(unpacked(document), (value) => value * unit);
  const difficulty = scaled(curves.difficulty, curves.unit), se = scaled(curves.se, curves.unit);
  const covariance = curves.covariance ? scaled(curves.covariance, curves.covariance_unit) : null;
  const comparable = unpacked(curves.state);
  const state = new Uint8Array(n * m);
  for (let i = 0; i < n; i++) state.fill(comparable[i], i * m, (i + 1) * m);
  const latitude = curves.latitude ? unpacked(curves.latitude) : null, longitude = curves.longitude ? unpacked(curves.longitude) : null;
  const places = curves.ids.map((id, i) => ({
    id: id === null ? "" : id,
    label: id === null ? (n > 1 ? look.words.shared : look.words.single) : id,
    latitude: latitude && Number.isFinite(latitude[i]) ? Number(latitude[i].toFixed(4)) : null,
    longitude: longitude && Number.isFinite(longitude[i]) ? Number(longitude[i].toFixed(4)) : null,
  }));
  const outings = data.outings;
  const counts = outings ? unpacked(outings.counts) : null, who = outings ? unpacked(outings.riders) : null;
  const edges = outings ? Array.from({ length: outings.bins + 1 }, (_, b) => outings.lower + ((outings.upper - outings.lower) * b) / outings.bins) : [];
  // Outcomes by condition, of the chosen places together, or of all.
  function totals(chosen) {
    const sum = new Array(outings.bins).fill(0), which = chosen.length ? chosen : [0];
    for (const i of which) for (let b = 0; b < outings.bins; b++) sum[b] += counts[i * outings.bins + b];
    return sum;
  }
  function shades(skill, chosen) {
    if (!outings) return [];
    const found = [], sum = totals(chosen), level = (skill - outings.skill_from) / outings.skill_step;
    const near = [Math.floor(level), Math.ceil(level)].map((s) => clamp(s, 0, outings.skills - 1));
    for (let b = 0; b < outings.bins; b++) {
      const riders = who.length ? Math.max(...near.map((s) => who[s * outings.bins + b])) : 2;
      const text = sum[b] === 0 ? `Shaded: no outcome in this condition${chosen.length ? ` at ${chosen.length === 1 ? places[chosen[0]].label : "the chosen sites"}` : ""}; the curve is what its neighbours say.` : riders === 0 ? "Shaded: nobody of about this skill was out in this condition; the chance is what the model makes of others." : null;
      if (text === null) continue;
      const last = found[found.length - 1];
      if (last && last.text === text && Math.abs(last.to - edges[b]) < 1e-9 * (Math.abs(last.to) + 1)) last.to = edges[b + 1];
      else found.push({ from: edges[b], to: edges[b + 1], text });
    }
    return found;
  }
  function density(chosen) {
    if (!outings) return [];
    const sum = totals(chosen), most = Math.max(1, ...sum);
    return sum.map((count, b) => ({ from: edges[b], to: edges[b + 1], height: count / most })).filter(({ height }) => height > 0);
  }
  const everyone = outings ? totals([]) : null;
  const busiest = everyone ? everyone.indexOf(Math.max(...everyone)) : -1;
  return {
    noun: "site", nouns: "sites", key: "site", file: data.file, places, x: curves.x, axis: data.axis,
    tellX: (k) => `${data.quantity} ${number(curves.x[k], 3)}${data.unit ? ` ${data.unit}` : ""}`,
    difficulty, se, covariance, state, skilled: data.latent,
    discrimination: (i, k) => (data.latent ? at(data.discrimination, k) : 1),
    discriminationError: (k) => (data.latent ? at(data.discrimination_se, k) : 0),
    reference: curves.ids.length > 1 ? curves.ids.indexOf(null) : -1,
    start: busiest < 0 ? Math.floor(m / 2) : nearest(curves.x, (edges[busiest] + edges[busiest + 1]) / 2),
    population: data.latent ? (k) => curves.population[k] : null,
    percentile: data.skill_distribution ? percentileOf(data.skill_distribution) : normalBelow,
    shades, density, binned: m < 2, few: data.few,
  };
}

// One number for the whole curve, or one for each of its points.
function at(values, k) {
  return Array.isArray(values) ? values[k] : values;
}

// The share of riders below a skill, from a density on a grid.
function percentileOf({ skill, density }) {
  const below = density.map(((sum) => (value) => (sum += value))(0)), all = below[below.length - 1];
  return (value) => { const i = skill.findIndex((s) => s >= value); return i < 0 ? 1 : below[i] / all; };
}

const shown = explorer(model());
main.append(
  element("h1", {}, data.title),
  element("p", { class: "lead" }, data.summary),
  element("div", { class: "card notice" }, "In-house: these curves have full precision. ", element("code", {}, "isuit export-atlas"), " makes what can be published."),
  shown.controls, ...(shown.places ? [shown.places] : []), shown.curves,
  element("div", { class: "grid2" }, ...data.sections.map(section)),
);
shown.begin();
sectionCharts.forEach((draw) => draw());
