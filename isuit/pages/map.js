// A map on a canvas: coast and borders, places as dots from afar and as hexagons near, groups where dots would overlap.
// Mercator, because a hexagon keeps its shape in it; world coordinates run from 0 to 1 both ways.
const mercatorX = (longitude) => (longitude + 180) / 360;
const mercatorY = (latitude) => {
  const sine = Math.sin((clamp(latitude, -85, 85) * Math.PI) / 180);
  return 0.5 - Math.log((1 + sine) / (1 - sine)) / (4 * Math.PI);
};

const world = (() => {
  const file = JSON.parse(document.getElementById("world").textContent);
  const bytes = bytesOf(file.arcs);
  let at = 0;
  const next = () => { let value = 0, shift = 0, byte; do { byte = bytes[at++]; value |= (byte & 127) << shift; shift += 7; } while (byte & 128); return value & 1 ? -((value + 1) >> 1) : value >> 1; };
  const arcs = [];
  while (at < bytes.length) {
    const points = new Float64Array(2 * next());
    for (let i = 0, x = 0, y = 0; i < points.length; i += 2) { x += next(); y += next(); points[i] = x / file.steps_per_degree; points[i + 1] = y / file.steps_per_degree; }
    arcs.push(points);
  }
  const ringOf = (numbers) => numbers.flatMap((number) => {
    const points = arcs[number < 0 ? ~number : number], found = [];
    for (let i = 0; i < points.length; i += 2) found.push([points[i], points[i + 1]]);
    return number < 0 ? found.reverse() : found;
  });
  // A ring that crosses the antimeridian goes on beyond 180 degrees, and is there a second time on the other side; one
  // around a pole is closed along it.
  function unrolled(ring) {
    let turn = 0, west = 180, east = -180;
    const points = ring.map(([x, y], i) => {
      if (i) { const step = x - ring[i - 1][0]; if (step > 180) turn -= 360; if (step < -180) turn += 360; }
      west = Math.min(west, x + turn); east = Math.max(east, x + turn);
      return [x + turn, y];
    });
    const last = points[points.length - 1];
    if (Math.abs(last[0] - points[0][0]) > 180) { const pole = last[1] < 0 ? -90 : 90; points.push([last[0], pole], [points[0][0], pole]); }
    const shifted = (by) => points.map(([x, y]) => [x + by, y]);
    return [points, ...(east > 180.01 ? [shifted(-360)] : []), ...(west < -180.01 ? [shifted(360)] : [])];
  }
  const countries = file.names.map((name, i) => {
    const rings = file.rings[i].map(ringOf).flatMap(unrolled), all = rings.flat();
    let west = 180, east = -180, south = 90, north = -90;
    for (const [x, y] of all) { west = Math.min(west, x); east = Math.max(east, x); south = Math.min(south, y); north = Math.max(north, y); }
    return { name, rings, west, east, south, north };
  });
  return { source: file.source, countries };
})();

const landPath = (() => {
  let made = null;
  return () => {
    if (made) return made;
    made = new Path2D();
    for (const { rings } of world.countries) for (const ring of rings) {
      ring.forEach(([x, y], i) => { if (i) made.lineTo(mercatorX(x), mercatorY(y)); else made.moveTo(mercatorX(x), mercatorY(y)); });
      made.closePath();
    }
    return made;
  };
})();

// Seas and oceans as boxes of whole degrees [name, west, south, east, north]: the first that holds a point names it. They are
// asked only about points far from any coast, where a box is as good as a border.
const SEAS = [
  ["Black Sea", 27, 40, 42, 47], ["Caspian Sea", 46, 36, 55, 48], ["Red Sea", 32, 12, 44, 30], ["Persian Gulf", 47, 23, 57, 31],
  ["Baltic Sea", 10, 53, 31, 66], ["Mediterranean Sea", -6, 30, 37, 46], ["North Sea", -4, 51, 10, 61], ["Norwegian Sea", -11, 61, 16, 73],
  ["Barents Sea", 16, 68, 60, 80], ["Greenland Sea", -20, 71, 16, 80], ["Labrador Sea", -65, 52, -43, 66], ["Hudson Bay", -96, 51, -77, 65],
  ["Gulf of Mexico", -98, 18, -81, 31], ["Caribbean Sea", -89, 9, -60, 22], ["Arabian Sea", 50, 5, 77, 26], ["Bay of Bengal", 77, 5, 95, 23],
  ["South China Sea", 99, 0, 121, 24], ["East China Sea", 117, 24, 130, 33], ["Sea of Japan", 127, 33, 142, 52], ["Sea of Okhotsk", 135, 44, 163, 62],
  ["Bering Sea", 162, 52, 180, 66], ["Bering Sea", -180, 52, -157, 66], ["Philippine Sea", 121, 5, 143, 33], ["Coral Sea", 143, -26, 167, -9],
  ["Tasman Sea", 147, -48, 174, -26], ["Arctic Ocean", -180, 66, 180, 90], ["Southern Ocean", -180, -90, 180, -60], ["Indian Ocean", 20, -60, 118, 31],
  ["Indian Ocean", 118, -60, 147, -31], ["Indian Ocean", 118, -31, 130, -9], ["North Atlantic Ocean", -98, 18, 20, 66], ["North Atlantic Ocean", -83, 9, 20, 18],
  ["North Atlantic Ocean", -77, 0, 20, 9], ["South Atlantic Ocean", -68, -60, 20, 0], ["North Pacific Ocean", -180, 0, 180, 66], ["South Pacific Ocean", -180, -60, 180, 0],
];
const seaAt = (latitude, longitude) => SEAS.find(([, west, south, east, north]) => longitude >= west && longitude <= east && latitude >= south && latitude <= north)[0];

// "Italy" where a point lies in it, "near Italy" within 300 km of it, the sea's name otherwise. Straight from the lines
// that are drawn, so within some kilometres of a border or coast it may name the neighbour.
function whereIs(latitude, longitude) {
  const shrink = Math.cos((latitude * Math.PI) / 180);
  let best = null, least = 300 / 111.2;
  for (const country of world.countries) {
    const aside = Math.max(country.west - longitude, 0, longitude - country.east) * shrink, above = Math.max(country.south - latitude, 0, latitude - country.north);
    if (Math.hypot(aside, above) > least) continue;
    let inside = false;
    for (const ring of country.rings) for (let i = 0, j = ring.length - 1; i < ring.length; j = i++) {
      const [ax, ay] = ring[i], [bx, by] = ring[j];
      if (ay > latitude !== by > latitude && longitude < ((bx - ax) * (latitude - ay)) / (by - ay) + ax) inside = !inside;
      const ex = (bx - ax) * shrink, ey = by - ay, px = (longitude - ax) * shrink, py = latitude - ay;
      const along = clamp((px * ex + py * ey) / (ex * ex + ey * ey || 1), 0, 1);
      const distance = Math.hypot(px - along * ex, py - along * ey);
      if (distance < least) { least = distance; best = country.name; }
    }
    if (inside) return country.name;
  }
  return best ? `near ${best}` : seaAt(latitude, longitude);
}

const HEXAGON_FROM = 16; // pixels across: smaller ones are drawn as dots
const GROUP = 26; // pixels within which dots are one group

// places: [{ latitude, longitude, ring }], with ring the outline as [longitude, latitude] points or absent. `paint(i)`
// tells how place i is drawn: { fill, state: "estimated" | "saturated" | "incomparable" | "nothing", uncertain, chosen }.
function map({ places, paint, pressed, pointed, label }) {
  const canvas = element("canvas", { tabindex: "0", role: "img", id: "map", "aria-label": label });
  const button = (text, name, act) => { const made = element("button", { type: "button", "aria-label": name, title: name }, text); made.addEventListener("click", act); return made; };
  const tip = element("div", { class: "tip", hidden: "" });
  const node = element("div", { class: "map" }, canvas, element("div", { class: "zoom" }, button("+", "closer", () => zoom(2)), button("\u2212", "further away", () => zoom(0.5)), button("\u2302", "all of them", () => { fit(); draw(); })), tip, element("div", { class: "source" }, "Coast and borders: Natural Earth"));
  const X = places.map((place) => mercatorX(place.longitude)), Y = places.map((place) => mercatorY(place.latitude));
  let centre = [0.5, 0.5], scale = 400, drawnDots = [], asked = false, fitted = false;

  function fit(of = null) {
    const which = of || places.map((_, i) => i);
    if (!which.length) return;
    let west = 1, east = 0, top = 1, bottom = 0;
    for (const i of which) { west = Math.min(west, X[i]); east = Math.max(east, X[i]); top = Math.min(top, Y[i]); bottom = Math.max(bottom, Y[i]); }
    centre = [(west + east) / 2, (top + bottom) / 2];
    const width = canvas.clientWidth || 600, height = canvas.clientHeight || 400;
    // One place alone is shown with the country around it.
    scale = clamp(Math.min((width - 70) / Math.max(east - west, 1e-9), (height - 70) / Math.max(bottom - top, 1e-9)), width, of ? 400000 : 20000);
    fitted = true;
  }
  const place = (i) => [(X[i] - centre[0]) * scale + canvas.clientWidth / 2, (Y[i] - centre[1]) * scale + canvas.clientHeight / 2];
  function zoom(factor, at = [canvas.clientWidth / 2, canvas.clientHeight / 2]) {
    const before = scale;
    scale = clamp(scale * factor, Math.min(300, canvas.clientWidth), 4e6);
    const turn = 1 / before - 1 / scale;
    centre = [centre[0] + (at[0] - canvas.clientWidth / 2) * turn, centre[1] + (at[1] - canvas.clientHeight / 2) * turn];
    later();
  }
  function later() { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; draw(); }); } }

  let hatch = null;
  function hatched(context) {
    if (!hatch) {
      const tile = element("canvas", { width: 6, height: 6 }), brush = tile.getContext("2d");
      brush.strokeStyle = themed("card"); brush.lineWidth = 1.6;
      brush.beginPath(); brush.moveTo(-1, 7); brush.lineTo(7, -1); brush.stroke();
      hatch = context.createPattern(tile, "repeat");
    }
    return hatch;
  }
  dark.addEventListener("change", () => { hatch = null; draw(); });
  addEventListener("beforeprint", () => { hatch = null; draw(); });

  function draw() {
    const width = canvas.clientWidth, height = canvas.clientHeight, ratio = window.devicePixelRatio || 1;
    if (!width) return;
    if (!fitted) fit();
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
    const context = canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = themed("sea");
    context.fillRect(0, 0, canvas.width, canvas.height);
    const step = scale * ratio;
    context.setTransform(step, 0, 0, step, canvas.width / 2 - centre[0] * step, canvas.height / 2 - centre[1] * step);
    context.fillStyle = themed("land");
    context.fill(landPath(), "evenodd");
    context.lineWidth = 0.8 / scale;
    context.strokeStyle = themed("border");
    context.stroke(landPath());
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ink = themed("ink"), across = hexagonSize();
    drawnDots = [];
    if (across >= HEXAGON_FROM) drawHexagons(context, ink); else drawDots(context, ink);
  }
  // How many pixels a hexagon is across at this scale; 0 where places have no outline.
  function hexagonSize() {
    const ring = places[0] && places[0].ring;
    return ring ? (Math.max(...ring.map(([, y]) => mercatorY(y))) - Math.min(...ring.map(([, y]) => mercatorY(y)))) * scale : 0;
  }
  function drawHexagons(context, ink) {
    const toScreen = ([x, y]) => [(mercatorX(x) - centre[0]) * scale + canvas.clientWidth / 2, (mercatorY(y) - centre[1]) * scale + canvas.clientHeight / 2];
    places.forEach((each, i) => {
      const [x, y] = place(i);
      if (!each.ring || x < -200 || y < -200 || x > canvas.clientWidth + 200 || y > canvas.clientHeight + 200) return;
      const how = paint(i), corners = each.ring.map(toScreen);
      context.beginPath();
      corners.forEach(([px, py], k) => { if (k) context.lineTo(px, py); else context.moveTo(px, py); });
      context.closePath();
      if (how.state === "estimated") {
        context.globalAlpha = 0.85; context.fillStyle = how.fill; context.fill(); context.globalAlpha = 1;
        if (how.uncertain) { context.fillStyle = hatched(context); context.fill(); }
      }
      context.lineWidth = how.chosen ? 3 : 1; context.strokeStyle = how.chosen || ink;
      context.setLineDash(how.state === "estimated" ? [] : [4, 3]); context.stroke(); context.setLineDash([]);
      if (how.state !== "estimated") symbol(context, how.state, x, y, 6, ink);
      const radius = Math.max(...corners.map(([px, py]) => Math.hypot(px - x, py - y)));
      drawnDots.push({ x, y, radius, members: [i] });
    });
  }
  function drawDots(context, ink) {
    const groups = new Map();
    for (let i = 0; i < places.length; i++) {
      const [x, y] = place(i);
      if (x < -20 || y < -20 || x > canvas.clientWidth + 20 || y > canvas.clientHeight + 20) continue;
      // The grid is fixed to the world, so that groups do not flicker while the map is moved.
      const key = `${Math.floor((X[i] * scale) / GROUP)},${Math.floor((Y[i] * scale) / GROUP)}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(i);
    }
    const dots = [];
    for (const members of groups.values()) {
      const middle = members.reduce(([x, y], i) => { const [px, py] = place(i); return [x + px / members.length, y + py / members.length]; }, [0, 0]);
      dots.push({ x: middle[0], y: middle[1], members });
    }
    dots.sort((a, b) => b.members.length - a.members.length);
    for (const dot of dots) {
      const hows = dot.members.map(paint), known = hows.filter((how) => how.state === "estimated"), chosen = hows.find((how) => how.chosen);
      const many = dot.members.length > 1;
      dot.radius = many ? 9 + Math.min(7, Math.log2(dot.members.length)) : known.length && known[0].uncertain ? 5.5 : 7.5;
      if (known.length) {
        const slices = [...known].sort((a, b) => a.hardness - b.hardness);
        slices.forEach((how, k) => {
          context.beginPath(); context.moveTo(dot.x, dot.y);
          context.arc(dot.x, dot.y, dot.radius, (k / slices.length) * 2 * Math.PI - Math.PI / 2, ((k + 1) / slices.length) * 2 * Math.PI - Math.PI / 2);
          context.fillStyle = how.fill; context.fill();
        });
        if (!many && known[0].uncertain) { context.beginPath(); context.arc(dot.x, dot.y, dot.radius, 0, 2 * Math.PI); context.fillStyle = hatched(context); context.fill(); }
      } else {
        context.beginPath(); context.arc(dot.x, dot.y, dot.radius, 0, 2 * Math.PI); context.fillStyle = themed("card"); context.fill();
      }
      context.beginPath(); context.arc(dot.x, dot.y, dot.radius, 0, 2 * Math.PI);
      context.lineWidth = chosen ? 3.5 : 1; context.strokeStyle = chosen ? chosen.chosen : ink; context.stroke();
      if (many) {
        context.beginPath(); context.arc(dot.x, dot.y, 7.5, 0, 2 * Math.PI); context.fillStyle = themed("card"); context.fill();
        context.fillStyle = ink; context.font = `600 ${dot.members.length > 99 ? 7.5 : 9.5}px ${themed("font")}`; context.textAlign = "center"; context.textBaseline = "middle";
        context.fillText(dot.members.length > 999 ? `${Math.round(dot.members.length / 1000)}k` : String(dot.members.length), dot.x, dot.y + 0.5);
      } else if (!known.length) symbol(context, hows[0].state, dot.x, dot.y, 4, ink);
      drawnDots.push(dot);
    }
  }
  function symbol(context, state, x, y, size, ink) {
    context.strokeStyle = ink; context.lineWidth = 1.4; context.beginPath();
    if (state === "incomparable") { context.moveTo(x - size, y - size); context.lineTo(x + size, y + size); context.moveTo(x + size, y - size); context.lineTo(x - size, y + size); }
    if (state === "saturated") { context.moveTo(x - size, y); context.lineTo(x + size, y); }
    context.stroke();
  }

  const hit = (x, y) => drawnDots.filter((dot) => Math.hypot(dot.x - x, dot.y - y) <= Math.max(dot.radius, 12)).sort((a, b) => Math.hypot(a.x - x, a.y - y) - Math.hypot(b.x - x, b.y - y))[0];
  const inside = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, inside(event)); moved = 0; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointermove", (event) => {
    const now = inside(event), before = fingers.get(event.pointerId);
    if (!before) { point(now); return; }
    const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
    if (others.length) { // two fingers: apart is closer
      const was = Math.hypot(before[0] - others[0][0], before[1] - others[0][1]), is = Math.hypot(now[0] - others[0][0], now[1] - others[0][1]);
      zoom(is / (was || 1), [(now[0] + others[0][0]) / 2, (now[1] + others[0][1]) / 2]);
    } else centre = [centre[0] - (now[0] - before[0]) / scale, clamp(centre[1] - (now[1] - before[1]) / scale, 0, 1)];
    moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    fingers.set(event.pointerId, now);
    later();
  });
  const up = (event) => { fingers.delete(event.pointerId); };
  canvas.addEventListener("pointerup", (event) => { const at = inside(event), was = fingers.has(event.pointerId); up(event); if (was && moved < 6) press(at); });
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  // A wheel alone scrolls the page: the map must not swallow it.
  canvas.addEventListener("wheel", (event) => { if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return; event.preventDefault(); zoom(1.0015 ** -event.deltaY, inside(event)); }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] }[event.key];
    if (step) { centre = [centre[0] + step[0] / scale, clamp(centre[1] + step[1] / scale, 0, 1)]; later(); }
    else if (event.key === "+" || event.key === "=") zoom(2);
    else if (event.key === "-") zoom(0.5);
    else if (event.key === "0") { fit(); later(); }
    else if (event.key === "Enter") { const best = hit(canvas.clientWidth / 2, canvas.clientHeight / 2); if (best) pressed(best.members[0]); }
    else return;
    event.preventDefault();
  });
  function press([x, y]) {
    const dot = hit(x, y);
    if (!dot) return;
    if (dot.members.length === 1) { pressed(dot.members[0]); return; }
    const before = scale;
    fit(dot.members);
    if (scale < before * 1.5) scale = before * 3; // a group of places at one spot
    later();
  }
  function point([x, y]) {
    const dot = hit(x, y);
    canvas.style.cursor = dot ? "pointer" : "grab";
    tip.hidden = !dot;
    if (!dot) return;
    tip.textContent = dot.members.length > 1 ? `${dot.members.length} here: press to come closer` : pointed(dot.members[0]);
    tip.style.left = `${clamp(dot.x + 12, 4, Math.max(4, canvas.clientWidth - 200))}px`;
    tip.style.top = `${Math.max(4, dot.y - 34)}px`;
  }
  whenResized(node, draw);
  return { node, draw, fit(of) { fit(of); draw(); }, zoom, get dots() { return drawnDots; }, get scale() { return scale; }, get hexagons() { return hexagonSize() >= HEXAGON_FROM; } };
}
