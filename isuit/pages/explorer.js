// From thousands of places to one: a condition and a skill that sliders set, a map, a ranking with bands, up to six
// places compared, and all of it in the address. A page gives the model:
//   noun, nouns, key        what a place is called here, and in the address
//   places                  { id, label, detail(), latitude, longitude, ring }
//   x, axis                 the conditions, and what they are ("wind (kn)")
//   difficulty, se, state   of place i at condition k, at [i * x.length + k]; state 0 is an estimate, see STATES
//   covariance              of difficulty and discrimination, or null
//   discrimination(i, k)    or null where the page does not know it; then a place is told by the skill it asks for
//   discriminationError(k)  its standard error, 0 where it is not known
//   skilled                 whether difficulty and skill are told apart
//   reference               the number of the place that stands for all, or -1: drawn, and not ranked
//   start                   the condition to begin with
//   population(k)           success of the whole population, or null
//   percentile(skill)       share of riders below a skill
//   shades(skill, chosen)   where nobody was out; density(chosen): where the data are
const STATES = ["estimated", "saturated", "incomparable", "nothing"];
const MOST = look.compared.length;
const PAGE = 40; // rows of the ranking at a time
const SHOWN_ROWS = 200; // of the table; the file has all

// The share of a normal population below a skill (Abramowitz and Stegun 26.2.17, to seven digits).
function normalBelow(skill) {
  const t = 1 / (1 + 0.2316419 * Math.abs(skill));
  const tail = (Math.exp(-(skill ** 2) / 2) / Math.sqrt(2 * Math.PI)) * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return skill > 0 ? 1 - tail : tail;
}

function explorer(model) {
  const m = model.x.length, n = model.places.length;
  const ranked = [...Array(n).keys()].filter((i) => i !== model.reference);
  const byId = new Map(model.places.map((place, i) => [place.id, i]));
  const modes = model.skilled ? ["difficulty", model.discrimination ? "suitability" : "margin"] : ["suitability"];
  const MODES = { difficulty: "how hard", suitability: "chance for this skill", margin: "skill to spare" };
  const state = { k: model.start, skill: 0, by: modes[0], order: "hard", query: "", slots: Array(MOST).fill(null), touched: false, rows: PAGE };

  // --- what is known of a place at a condition ---------------------------------------------------------------------
  const stateOf = (i, k) => STATES[model.state[i * m + k]];
  function difficulty(i, k) {
    const value = model.difficulty[i * m + k], half = Z95 * model.se[i * m + k];
    return { value, lower: value - half, upper: value + half };
  }
  function suitability(i, k, skill) {
    const at = i * m + k, a = model.discrimination(i, k), gap = skill - model.difficulty[at];
    const variance = (a * model.se[at]) ** 2 + (gap * model.discriminationError(k)) ** 2 - (model.covariance ? 2 * a * gap * model.covariance[at] : 0);
    const half = Z95 * Math.sqrt(Math.max(0, variance));
    return { value: sigmoid(a * gap), lower: sigmoid(a * gap - half), upper: sigmoid(a * gap + half) };
  }
  function margin(i, k, skill) {
    const { value, lower, upper } = difficulty(i, k);
    return { value: skill - value, lower: skill - upper, upper: skill - lower };
  }
  const measure = (i, k = state.k, by = state.by) => (by === "difficulty" ? difficulty(i, k) : by === "margin" ? margin(i, k, state.skill) : suitability(i, k, state.skill));
  const tell = (value, by = state.by) => (by === "suitability" ? share(value) : signed(value));
  // The same colours for the same difficulty at every condition: the ends are those of nearly all estimates.
  const [kindest, hardest] = (() => {
    const known = [];
    for (const i of ranked) for (let k = 0; k < m; k++) if (model.state[i * m + k] === 0) known.push(model.difficulty[i * m + k]);
    if (!known.length) return [-1, 1];
    known.sort((a, b) => a - b);
    const low = known[Math.floor(0.02 * (known.length - 1))], high = known[Math.ceil(0.98 * (known.length - 1))];
    // Beyond three sd there is nobody: the colours are for where people are.
    const [kind, hard] = [Math.max(low, -3), Math.min(high, 3)];
    return hard - kind < 0.5 ? [(kind + hard) / 2 - 0.25, (kind + hard) / 2 + 0.25] : [kind, hard];
  })();
  const hardness = (value) => (state.by === "difficulty" ? (value - kindest) / (hardest - kindest) : state.by === "margin" ? 0.5 - value / 4 : 1 - value);

  // --- the controls ------------------------------------------------------------------------------------------------
  const condition = element("input", { type: "range", id: "condition", min: 0, max: m - 1, step: 1, value: state.k, "aria-label": model.axis });
  const conditionValue = element("output", { id: "condition-value", for: "condition" });
  const skill = element("input", { type: "range", id: "skill", min: -3, max: 3, step: 0.1, value: 0, "aria-label": look.words.skill });
  const skillValue = element("output", { id: "skill-value", for: "skill" });
  const presets = LEVELS.map(([value, name]) => { const made = element("button", { type: "button", class: "preset", "data-skill": value }, name); made.addEventListener("click", () => { state.skill = value; changed(); }); return made; });
  const modeButtons = modes.map((mode) => { const made = element("button", { type: "button", class: "mode", "data-by": mode }, MODES[mode]); made.addEventListener("click", () => { state.by = mode; changed(); }); return made; });
  condition.addEventListener("input", () => { state.k = Number(condition.value); changed(); });
  skill.addEventListener("input", () => { state.skill = Number(skill.value); changed(); });
  const controls = element("div", { class: "card controls" },
    m > 1 ? element("div", { class: "control" }, element("label", { for: "condition" }, "Condition"), condition, conditionValue) : null,
    model.skilled ? element("div", { class: "control" }, element("label", { for: "skill" }, "Skill"), skill, element("div", { class: "presets" }, ...presets), skillValue) : null);

  // --- map and ranking ---------------------------------------------------------------------------------------------
  const placed = ranked.filter((i) => Number.isFinite(model.places[i].latitude));
  const colourOfChosen = (i) => { const slot = state.slots.indexOf(i); return slot < 0 ? null : look.compared[slot]; };
  const sheet = placed.length ? map({
    places: placed.map((i) => model.places[i]),
    label: `Map of ${placed.length} ${model.nouns}. Arrow keys move it, plus and minus zoom; the ranking beside it holds the same.`,
    paint(p) {
      const i = placed[p], kind = stateOf(i, state.k), level = kind === "estimated" ? hardness(measure(i).value) : null;
      return { state: kind, hardness: level, fill: level === null ? null : colourOf(level), uncertain: model.se[i * m + state.k] > look.beyond, chosen: colourOfChosen(i) };
    },
    pressed: (p) => toggle(placed[p]),
    pointed: (p) => `${model.places[placed[p]].label}: ${spoken(placed[p])}`,
  }) : null;
  const spoken = (i) => {
    const kind = stateOf(i, state.k);
    if (kind !== "estimated") return look.words[kind];
    const { value, lower, upper } = measure(i);
    return `${tell(value)} (${tell(lower)} to ${tell(upper)})`;
  };
  const legend = element("div", { class: "legend" });
  function drawLegend() {
    const ends = state.by === "difficulty" ? [signed(kindest, 1), signed(hardest, 1)] : state.by === "margin" ? ["+2 and more", "\u22122 and less"] : ["100 %", "0 %"];
    const names = { difficulty: "difficulty", suitability: "chance of success", margin: "skill to spare" };
    const key = (mark, text) => element("span", { class: "key" }, element("span", { class: `sign ${mark}`, "aria-hidden": "true" }), text);
    legend.replaceChildren(
      element("span", {}, names[state.by]), element("span", {}, ends[0]),
      element("span", { class: "ramp", "aria-hidden": "true", style: `background:linear-gradient(90deg,${look.scale.join(",")})` }), element("span", {}, ends[1]),
      key("uncertain", "uncertain"), key("saturated", "saturated"), key("incomparable", "not comparable"));
  }

  const search = element("input", { type: "search", id: "search", placeholder: `Search ${model.nouns}`, "aria-label": `Search ${model.nouns}`, autocomplete: "off", spellcheck: "false" });
  const order = element("select", { id: "order", "aria-label": "Order" }, ...[["hard", "hardest first"], ["kind", "easiest first"], ["sure", "most certain first"], ["name", "by name"]].map(([value, text]) => element("option", { value }, text)));
  const list = element("ol", { id: "ranking", class: "ranking" });
  const found = element("p", { class: "soft", id: "found", "aria-live": "polite" });
  const more = element("button", { type: "button", id: "more" }, "Show more");
  search.addEventListener("input", () => { state.query = search.value; state.rows = PAGE; drawRanking(); remember(); });
  order.addEventListener("change", () => { state.order = order.value; state.rows = PAGE; drawRanking(); remember(); });
  more.addEventListener("click", () => { state.rows += 5 * PAGE; drawRanking(); });

  const asked = (i) => { const place = model.places[i], text = state.query.trim().toLocaleLowerCase(); return !text || `${place.label} ${place.id} ${place.search ? place.search() : ""}`.toLocaleLowerCase().includes(text); };
  // The places that are asked for, in the order that is asked for; those without a number come last.
  function ranking() {
    const wanted = state.query.trim() ? ranked.filter(asked) : ranked;
    const sign = state.by === "difficulty" ? 1 : -1, key = new Float64Array(n);
    for (const i of wanted) key[i] = model.state[i * m + state.k] !== 0 ? Infinity : state.order === "sure" ? model.se[i * m + state.k] : state.order === "kind" ? sign * measure(i).value : -sign * measure(i).value;
    if (state.order === "name") return [...wanted].sort((a, b) => model.places[a].label.localeCompare(model.places[b].label));
    return [...wanted].sort((a, b) => key[a] - key[b] || a - b);
  }
  function drawRanking() {
    const rows = ranking(), shown = rows.slice(0, state.rows);
    let low = state.by === "suitability" ? 0 : Infinity, high = state.by === "suitability" ? 1 : -Infinity;
    if (state.by !== "suitability") {
      for (const i of ranked) if (model.state[i * m + state.k] === 0) { const { value } = measure(i); low = Math.min(low, value); high = Math.max(high, value); }
      const room = Math.max(0.5, 0.25 * (high - low)); low -= room; high += room;
    }
    const across = (value) => clamp((100 * (value - low)) / (high - low), 0, 100);
    list.replaceChildren(...shown.map((i, position) => {
      const place = model.places[i], kind = stateOf(i, state.k), chosen = colourOfChosen(i);
      let bar, told;
      if (kind === "estimated") {
        const { value, lower, upper } = measure(i);
        bar = element("span", { class: "bar" },
          element("span", { class: "reach", style: `left:${across(lower)}%;width:${across(upper) - across(lower)}%` }),
          element("span", { class: "dot", style: `left:${across(value)}%;background:${colourOf(hardness(value))}` }));
        told = element("span", { class: "told" }, element("b", {}, tell(value)), element("span", { class: "soft" }, ` ${tell(lower)} to ${tell(upper)}`));
      } else { bar = element("span", { class: "bar none" }); told = element("span", { class: "told soft" }, look.words[kind]); }
      const button = element("button", { type: "button", class: "place", "aria-pressed": chosen ? "true" : "false", "data-id": place.id },
        element("span", { class: "rank" }, state.order === "name" || kind !== "estimated" ? "\u00b7" : String(position + 1)),
        element("span", { class: "swatch", style: chosen ? `background:${chosen}` : "" }),
        element("span", { class: "name" }, place.label, place.detail ? element("span", { class: "soft" }, ` ${place.detail()}`) : null), bar, told);
      button.addEventListener("click", () => toggle(i));
      return element("li", {}, button);
    }));
    found.textContent = rows.length === ranked.length ? `${grouped(String(ranked.length))} ${model.nouns}, by ${state.order === "name" ? "name" : MODES[state.by]} at ${model.tellX(state.k)}` : `${grouped(String(rows.length))} of ${grouped(String(ranked.length))} ${model.nouns}`;
    more.hidden = rows.length <= state.rows;
  }

  // --- comparison --------------------------------------------------------------------------------------------------
  const chips = element("div", { class: "chips", id: "chosen" });
  const notice = element("p", { class: "soft", role: "status", id: "notice" });
  const press = (x) => { state.k = nearest(model.x, x); changed(); };
  const names = (shown) => shown.series.filter((line) => line.name).map((line) => line.name).join(", ");
  const formX = (value) => number(value, 3);
  const hardChart = model.skilled ? chart({ id: "difficulty", x: model.axis, y: look.words.difficulty, form: (v) => signed(v), formX, chosen: press, label: (shown) => `Difficulty along ${model.axis} with its 95 % band: ${names(shown)}` }) : null;
  const easeChart = model.discrimination ? chart({ id: "suitability", x: model.axis, y: look.words.suitability, form: (v) => share(v), formY: (v) => share(v), formX, chosen: press, label: (shown) => `Chance of success along ${model.axis} with its 95 % band: ${names(shown)}` }) : null;
  const easeNote = element("p", { class: "soft", id: "shaded" });

  const drawnPlaces = () => state.slots.map((i, slot) => ({ i, slot })).filter(({ i }) => i !== null);
  function seriesOf(measureAt, by) {
    const line = (i, colour, dash, name, thin) => {
      const rows = model.x.map((_, k) => (model.state[i * m + k] === 0 ? measureAt(i, k) : { value: NaN, lower: NaN, upper: NaN }));
      return { name, colour, dash, thin, marks: model.binned && !model.few, bare: Boolean(model.few), x: model.x, y: rows.map((row) => row.value), lower: rows.map((row) => row.lower), upper: rows.map((row) => row.upper) };
    };
    const lines = drawnPlaces().map(({ i, slot }) => line(i, look.compared[slot], look.dashes[slot], model.places[i].label, false));
    if (!lines.length && model.reference >= 0) lines.push(line(model.reference, "var(--accent)", "", model.places[model.reference].label, false));
    if (by === "suitability" && model.population && model.skilled) lines.push({ name: look.words.population, colour: "var(--soft)", dash: "2 4", thin: true, x: model.x, y: model.x.map((_, k) => model.population(k)) });
    if (by === "difficulty" && model.expert) { const expert = model.expert(drawnPlaces().map(({ i }) => i)); if (expert) lines.push({ name: "expert curve", colour: "var(--soft)", dash: "2 4", thin: true, x: model.x, y: expert }); }
    return lines;
  }
  function drawCurves() {
    const chosen = drawnPlaces().map(({ i }) => i), half = m > 1 ? (model.x[m - 1] - model.x[0]) * 0.02 : 0.5;
    const domain = [model.x[0] - half, model.x[m - 1] + half], cursor = model.x[state.k];
    const density = model.density ? model.density(chosen) : [];
    if (hardChart) hardChart.show({ series: seriesOf(difficulty, "difficulty"), domain, cursor, density });
    if (easeChart) {
      const shades = model.shades ? model.shades(state.skill, chosen) : [];
      easeChart.show({ series: seriesOf((i, k) => suitability(i, k, state.skill), "suitability"), domain, range: [0, 1], cursor, shades });
      easeNote.textContent = [model.few ? `${model.few}: only where it may lie is drawn.` : "", shades.length ? shades[0].text : ""].join(" ").trim();
    }
    chips.replaceChildren(...drawnPlaces().map(({ i, slot }) => {
      const gone = element("button", { type: "button", "aria-label": `Put ${model.places[i].label} away`, class: "gone" }, "\u00d7");
      gone.addEventListener("click", () => toggle(i));
      const dash = drawing("svg", { width: 26, height: 10, "aria-hidden": "true" }, drawing("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: look.compared[slot], "stroke-width": 3, "stroke-dasharray": look.dashes[slot] || null }));
      return element("span", { class: "chip" }, dash, element("span", { class: "name" }, model.places[i].label), gone);
    }));
    if (model.about) model.about(chosen, state);
  }
  function toggle(i) {
    state.touched = true;
    const slot = state.slots.indexOf(i), free = state.slots.indexOf(null);
    notice.textContent = "";
    if (slot >= 0) state.slots[slot] = null;
    else if (free < 0) notice.textContent = `${MOST} at most: put one away first.`;
    else state.slots[free] = i;
    changed();
  }

  // --- what is seen, as a table and as files -----------------------------------------------------------------------
  const tellers = [["difficulty", model.skilled, difficulty], ["suitability", Boolean(model.discrimination), (i, k) => suitability(i, k, state.skill)]].filter(([, there]) => there);
  const header = () => [model.key, ...(model.places[0].detail ? ["where"] : []), "latitude", "longitude", "metric", ...(model.skilled ? ["skill"] : []), ...tellers.flatMap(([name]) => [name, `${name}_lower`, `${name}_upper`]), "status"];
  function rowOf(i, k, form) {
    const place = model.places[i], known = model.state[i * m + k] === 0;
    const numbers = tellers.flatMap(([name, , of]) => { if (!known) return [null, null, null]; const { value, lower, upper } = of(i, k); return [value, lower, upper].map((v) => form(v, name)); });
    return [place.label, ...(place.detail ? [place.detail()] : []), place.latitude ?? null, place.longitude ?? null, model.x[k], ...(model.skilled ? [state.skill] : []), ...numbers, stateOf(i, k)];
  }
  const exact = (value) => Number(value.toPrecision(5));
  const file = (what) => `${model.file}-${what}.csv`;
  const button = (id, text, act) => { const made = element("button", { type: "button", id }, text); made.addEventListener("click", act); return made; };
  const rankingFile = button("download-ranking", "Download this ranking (CSV)", () => download(file("ranking"), csvOf([header(), ...ranking().map((i) => rowOf(i, state.k, exact))]), "text/csv"));
  const curvesFile = button("download-curves", "Download these curves (CSV)", () => {
    const chosen = drawnPlaces().map(({ i }) => i), which = chosen.length || model.reference < 0 ? chosen : [model.reference];
    download(file("curves"), csvOf([header(), ...which.flatMap((i) => model.x.map((_, k) => rowOf(i, k, exact)))]), "text/csv");
  });
  const tableHolder = element("div");
  const fold = element("details", { id: "table" }, element("summary", {}, "Table of what is shown"), tableHolder);
  function drawTable() {
    if (!fold.open) return;
    const rows = ranking(), form = (value, name) => tell(value, name);
    tableHolder.replaceChildren(tableOf(header(), rows.slice(0, SHOWN_ROWS).map((i) => rowOf(i, state.k, form).map((value) => value ?? "")), rows.length > SHOWN_ROWS ? `The first ${SHOWN_ROWS} of ${grouped(String(rows.length))}; the file has all` : `${rows.length} ${rows.length === 1 ? model.noun : model.nouns} at ${model.tellX(state.k)}`));
  }
  fold.addEventListener("toggle", drawTable);

  // --- the address -------------------------------------------------------------------------------------------------
  function remember() {
    writeAddress([
      ...(model.topic ? [["topic", model.topic]] : []),
      ...(state.touched ? drawnPlaces().map(({ i }) => [model.key, model.places[i].id]) : []),
      ["metric", state.k === model.start ? null : model.x[state.k]], ["skill", state.skill || null], ["by", state.by === modes[0] ? null : state.by],
      ["order", state.order === "hard" ? null : state.order], ["q", state.query],
    ]);
  }
  function recall() {
    const address = readAddress(), has = (name) => address.get(name) !== null && address.get(name) !== "";
    const metric = Number(address.get("metric")), level = Number(address.get("skill"));
    state.k = has("metric") && Number.isFinite(metric) ? nearest(model.x, metric) : model.start;
    state.skill = has("skill") && Number.isFinite(level) ? clamp(level, -3, 3) : 0;
    state.by = modes.includes(address.get("by")) ? address.get("by") : modes[0];
    state.order = [...order.options].some(({ value }) => value === address.get("order")) ? address.get("order") : "hard";
    state.query = address.get("q") || "";
    state.slots.fill(null);
    const named = address.getAll(model.key).map((id) => byId.get(id)).filter((i) => i !== undefined).slice(0, MOST);
    state.touched = named.length > 0;
    if (!named.length) { // the hardest, the middle one and the easiest say most
      const query = state.query; state.query = "";
      const known = ranking().filter((i) => model.state[i * m + state.k] === 0);
      state.query = query;
      named.push(...new Set([known[0], known[Math.floor(known.length / 2)], known[known.length - 1]].filter((i) => i !== undefined)));
    }
    [...new Set(named)].forEach((i, slot) => { state.slots[slot] = i; });
    search.value = state.query; order.value = state.order;
    changed();
  }
  function changed() {
    condition.value = state.k; skill.value = state.skill;
    conditionValue.textContent = model.tellX(state.k);
    condition.setAttribute("aria-valuetext", conditionValue.textContent);
    const level = LEVELS.find(([value]) => Math.abs(value - state.skill) < 0.05);
    skillValue.textContent = `${level ? level[1] : "skill"} (${signed(state.skill, 1)} sd): more skilled than ${share(model.percentile(state.skill))} of these riders`;
    skill.setAttribute("aria-valuetext", skillValue.textContent);
    presets.forEach((made) => made.setAttribute("aria-pressed", String(Math.abs(Number(made.dataset.skill) - state.skill) < 0.05)));
    modeButtons.forEach((made) => made.setAttribute("aria-pressed", String(made.dataset.by === state.by)));
    drawLegend(); drawRanking(); drawCurves(); drawTable();
    if (sheet) sheet.draw();
    remember();
  }
  addEventListener("hashchange", recall);

  const several = ranked.length > 1;
  const places = element("section", { class: "card", id: "places" },
    element("div", { class: "heading" }, element("h2", {}, model.nouns[0].toUpperCase() + model.nouns.slice(1)), modes.length > 1 ? element("div", { class: "modes", role: "group", "aria-label": "Shown by" }, ...modeButtons) : null),
    element("div", { class: sheet ? "beside" : "" }, sheet ? element("div", {}, sheet.node, legend) : null,
      element("div", { class: "listing" }, element("div", { class: "find" }, search, order), found, element("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Ranking" }, list, more), notice)));
  const curves = element("section", { class: "card", id: "curves" },
    several ? element("div", { class: "heading" }, element("h2", {}, `Compared, up to ${MOST}`), chips) : null,
    hardChart ? element("h3", {}, "Difficulty, with its 95 % band") : null, hardChart ? hardChart.node : null,
    easeChart ? element("h3", {}, model.skilled ? "Chance of success for this skill, with its 95 % band" : "Chance of success of the population, with its 95 % band") : null, easeChart ? easeChart.node : null, easeNote,
    element("p", { class: "soft" }, model.skilled ? "The skill slider moves the chance of success. It does not move difficulty, which is a property of the condition: the skill at which success is as likely as failure." : "Skill and difficulty could not be told apart in this cohort; this is the chance over everyone who went out."),
    element("div", { class: "buttons" }, several ? rankingFile : null, curvesFile), fold);
  return { controls, places: several ? places : null, curves, begin: recall, sheet, state, charts: { difficulty: hardChart, suitability: easeChart } };
}
