"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.getElementById("page");
const COLOURS = ["#7a5195", "#1b6ca8", "#3a9679", "#d1622b", "#b8860b", "#c2406b", "#4f6d7a", "#6b8e23", "#8c564b", "#17becf"];
const Z95 = 1.959963984540054; // as isuit.domain has it
const LEVELS = [[-1, "beginner"], [0, "intermediate"], [1, "expert"]];

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
// Text that a user gave is never markup: not in the page, and not in Plotly's labels, which know some tags.
const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function facts(rows) {
  const body = element("tbody");
  for (const [name, value] of rows) {
    if (value === null || value === undefined) continue;
    const cell = element("td");
    for (const line of [].concat(value)) cell.append(element("div", {}, line));
    body.append(element("tr", {}, element("th", { scope: "row" }, name), cell));
  }
  return element("table", {}, body);
}

function layout(x, y, range) {
  return {
    margin: { l: 58, r: 14, t: 30, b: 46 }, showlegend: false, hovermode: "closest", hoverlabel: { namelength: -1 },
    font: { family: "system-ui, sans-serif", size: 12, color: "#1f2933" },
    xaxis: { title: { text: plain(x) }, gridcolor: "#e4e7eb", zeroline: false },
    yaxis: { title: { text: y }, gridcolor: "#e4e7eb", zeroline: false, ...(range ? { range } : {}) },
  };
}
const CONFIG = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };

function band(x, lower, upper, colour) {
  return {
    x: x.concat([...x].reverse()), y: upper.concat([...lower].reverse()), mode: "lines", fill: "toself",
    fillcolor: colour + "28", line: { width: 0 }, hoverinfo: "skip",
  };
}

// A slider for the declared skill; `moved` gets the value on every move.
function skillSlider(moved) {
  const input = element("input", { type: "range", id: "skill", min: "-3", max: "3", step: "0.1", value: "0" });
  const shown = element("output", { for: "skill", id: "skill-value" });
  const tell = () => {
    const skill = Number(input.value);
    const level = LEVELS.find(([value]) => Math.abs(value - skill) < 0.05);
    shown.textContent = `${skill > 0 ? "+" : ""}${skill.toFixed(1)} sd of the population${level ? ` (${level[1]})` : ""}`;
    return skill;
  };
  input.addEventListener("input", () => moved(tell()));
  tell();
  return element("div", { class: "slider" }, element("label", { for: "skill" }, "Skill of the person who asks"), input, shown);
}
