// Everything that a fit's record knows, a card each; `sectionCharts` are drawn once the cards stand on the page.
const sectionCharts = [];
function section(about) {
  const mark = { good: ["\u2713", "as it should be"], bad: ["!", "look here"] }[about.verdict];
  const body = [element("p", { class: "verdict" }, mark ? element("span", { class: "sign-of", role: "img", "aria-label": mark[1] }, mark[0]) : null, element("span", {}, about.sentence))];
  if (about.chart) {
    const { chart: spec } = about, percent = (value) => share(value);
    const made = chart({ id: `${about.id}-chart`, x: spec.x, y: spec.y, square: spec.square, form: spec.percent ? percent : undefined, formY: spec.percent ? percent : undefined, formX: spec.percent_x ? percent : undefined, label: () => `${about.title}: ${about.sentence}` });
    sectionCharts.push(() => made.show({ ...spec, hint: spec.hint, series: spec.series.map((line) => ({ ...line, colour: `var(--${line.colour || "accent"})` })) }));
    body.push(element("div", { class: "small" }, made.node));
  }
  const inside = [about.note ? element("p", {}, about.note) : null, about.facts && about.facts.length ? facts(about.facts) : null, about.table ? tableOf(about.table.columns, about.table.rows, about.table.caption) : null, about.commands ? element("pre", {}, about.commands.join("\n")) : null];
  if (inside.some((part) => part)) body.push(element("details", {}, element("summary", {}, about.fold || "For the statistician"), ...inside));
  return card({ title: about.title, id: about.id, kind: about.verdict === "bad" ? "notice" : "" }, ...body);
}
