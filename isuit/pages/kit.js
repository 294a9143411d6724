"use strict";
// What every page shares: elements, number formats, the state in the address, downloads.
const data = JSON.parse(document.getElementById("data").textContent);
const look = JSON.parse(document.getElementById("look").textContent);
const main = document.getElementById("page");
const Z95 = 1.959963984540054; // as isuit.domain has it
const LEVELS = [[-1, "beginner"], [0, "intermediate"], [1, "expert"]];

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const clamp = (x, low, high) => Math.min(high, Math.max(low, x));

// Children are nodes or text, never markup: a name is text, whatever it says.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Number formats, as isuit/look.py has them.
const grouped = (text) => text.replace(/^\d+/, (whole) => whole.replace(/\B(?=(\d{3})+$)/g, ","));
function number(value, digits = 4) {
  if (value === 0) return "0";
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  let text = grouped(Math.abs(value).toFixed(Math.min(places, 12)));
  if (text.includes(".")) text = text.replace(/0+$/, "").replace(/\.$/, "");
  return (value < 0 && text !== "0" ? "\u2212" : "") + text;
}
function signed(value, places = 2) {
  const text = Math.abs(value).toFixed(places);
  return Number(text) === 0 ? text : (value > 0 ? "+" : "\u2212") + text;
}
function share(value, places = 0) {
  const least = 10 ** -places, percent = 100 * value;
  if (percent > 0 && percent < least) return `< ${least.toFixed(places)} %`;
  if (percent < 100 && percent > 100 - least) return `> ${(100 - least).toFixed(places)} %`;
  return `${percent.toFixed(places)} %`;
}
const degrees = (latitude, longitude) =>
  `${Math.abs(latitude).toFixed(2)}° ${latitude < 0 ? "S" : "N"}, ${Math.abs(longitude).toFixed(2)}° ${longitude < 0 ? "W" : "E"}`;

// Packed arrays: little-endian numbers in base64.
function bytesOf(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array, i4: Int32Array, f4: Float32Array };
const unpacked = ({ type, values }) => new TYPES[type](bytesOf(values).buffer);

// The state of the page stands in its address, so that a link shows what was seen.
function readAddress() {
  return new URLSearchParams(location.hash.slice(1));
}
function writeAddress(parameters) {
  const kept = new URLSearchParams(parameters.filter(([, value]) => value !== null && value !== ""));
  const hash = `#${kept}`;
  if (hash !== location.hash) history.replaceState(null, "", hash === "#" ? location.pathname + location.search : hash);
}

function download(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
// A cell that a spreadsheet would take for a formula gets an apostrophe first.
function csvOf(rows) {
  const cell = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",") + "\n").join("");
}

function tableOf(columns, rows, caption) {
  const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)));
  const body = rows.map((row) => element("tr", {}, ...row.map((value, i) => (i ? element("td", {}, String(value)) : element("th", { scope: "row" }, String(value))))));
  const table = element("table", { class: "figures" }, caption ? element("caption", {}, caption) : null, element("thead", {}, head), element("tbody", {}, ...body));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "table" }, table);
}

// Names and values; a value of several lines is a list, one that is null is left out.
function facts(rows) {
  const list = element("dl", { class: "facts" });
  for (const [name, value] of rows) {
    if (value === null || value === undefined) continue;
    list.append(element("dt", {}, name), element("dd", {}, ...[].concat(value).map((line) => element("div", {}, line))));
  }
  return list;
}

function card(title, ...children) {
  const { id, kind } = typeof title === "object" ? title : {};
  const heading = typeof title === "object" ? title.title : title;
  return element("section", { class: kind ? `card ${kind}` : "card", id }, heading ? element("h2", {}, heading) : null, ...children);
}

// On paper everything is open.
let closed = [];
addEventListener("beforeprint", () => { closed = [...document.querySelectorAll("details:not([open])")]; closed.forEach((fold) => { fold.open = true; }); });
addEventListener("afterprint", () => { closed.forEach((fold) => { fold.open = false; }); });

// What is drawn again when its width changes, and, for a canvas, which has no style sheet, when the colours do.
const dark = matchMedia("(prefers-color-scheme: dark)");
const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
function whenResized(node, draw) {
  let width = 0;
  new ResizeObserver(() => { if (node.clientWidth && node.clientWidth !== width) { width = node.clientWidth; draw(); } }).observe(node);
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const STOPS = look.scale.map(rgb);
// The colour of a share from 0 (kind) to 1 (hard).
function colourOf(hardness) {
  const at = clamp(hardness, 0, 1) * (STOPS.length - 1), i = Math.min(Math.floor(at), STOPS.length - 2), part = at - i;
  return `rgb(${STOPS[i].map((value, k) => Math.round(value + part * (STOPS[i + 1][k] - value))).join(",")})`;
}
