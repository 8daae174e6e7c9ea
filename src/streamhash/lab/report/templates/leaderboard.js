"use strict";
// All values are in the page; what is chosen is ranked here, by the rules of lab/leaderboard.py.
const board = JSON.parse(document.getElementById("content").textContent);
const metricNames = Object.keys(board.metrics);
const unique = (values) => [...new Set(values)];
const all = {
  data: Object.keys(board.sets).filter((name) => board.blocks.some((block) => block[0] === name)),
  streams: unique(board.blocks.map((block) => block[1])),
  bits: unique(board.blocks.map((block) => block[2])).sort((a, b) => a - b),
  methods: board.methods.map((_, number) => number),
};
const state = { part: null, metric: metricNames[0], data: [], streams: [], bits: [], methods: all.methods, sort: "rank", down: false };

// --- statistics ---------------------------------------------------------------------------------
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function ranksOf(values) { // 1 for the highest; equal values share their ranks
  return values.map((value) => {
    const above = values.filter((other) => other > value).length;
    const same = values.filter((other) => other === value).length;
    return above + (same + 1) / 2;
  });
}

function chiSquareTail(x, degrees) { // the upper incomplete gamma function Q(degrees / 2, x / 2)
  const a = degrees / 2, z = x / 2;
  if (z <= 0) return 1;
  const scale = Math.exp(a * Math.log(z) - z - logGamma(a));
  if (z < a + 1) { // by its series
    let term = 1 / a, sum = term;
    for (let n = 1; n < 1000 && term > sum * 1e-15; n++) { term *= z / (a + n); sum += term; }
    return Math.max(0, 1 - sum * scale);
  }
  let b = z + 1 - a, c = 1e300, d = 1 / b, h = d; // by its continued fraction (Lentz)
  for (let n = 1; n < 1000; n++) {
    const top = -n * (n - a);
    b += 2;
    d = 1 / (top * d + b || 1e-300);
    c = b + top / c || 1e-300;
    h *= d * c;
    if (Math.abs(d * c - 1) < 1e-15) break;
  }
  return scale * h;
}

function logGamma(a) { // of a half or a whole number, by Stirling's series above 10
  let shift = 0;
  while (a < 10) shift -= Math.log(a++);
  return shift + (a - .5) * Math.log(a) - a + .5 * Math.log(2 * Math.PI) + 1 / (12 * a) - 1 / (360 * a ** 3) + 1 / (1260 * a ** 5);
}

function friedman(ranks) { // (methods, blocks), corrected for ties
  const k = ranks.length, n = ranks[0].length;
  let ties = 0;
  for (let j = 0; j < n; j++) {
    const counts = new Map();
    for (const row of ranks) counts.set(row[j], (counts.get(row[j]) || 0) + 1);
    for (const count of counts.values()) ties += count ** 3 - count;
  }
  const correction = 1 - ties / (n * (k ** 3 - k));
  if (correction === 0) return [0, 1];
  const spread = ranks.reduce((sum, row) => sum + (mean(row) - (k + 1) / 2) ** 2, 0);
  const statistic = 12 * n / (k * (k + 1)) * spread / correction;
  return [statistic, chiSquareTail(statistic, k - 1)];
}

// --- the ranking of what is chosen --------------------------------------------------------------
function chosenBlocks() {
  const numbers = board.blocks.map((_, number) => number).filter((number) => {
    const [data, stream, bits] = board.blocks[number];
    return state.data.includes(data) && state.streams.includes(stream) && state.bits.includes(bits);
  });
  const place = (number) => all.data.indexOf(board.blocks[number][0]);
  return numbers.sort((a, b) => place(a) - place(b) || a - b);
}

const seedsOf = (method, block) => board.cells[method][block] || [];

function whyUnranked(method, blocks) {
  const metric = metricNames.indexOf(state.metric);
  const missing = blocks.filter((block) => !seedsOf(method, block).some((each) => each[0] === 0));
  if (!missing.length) {
    const without = blocks.some((block) => seedsOf(method, block).some((each) => each[0] === 0 && each[1][metric] === null));
    return without ? `rows without ${board.metrics[state.metric]}` : "";
  }
  const sets = unique(missing.map((block) => board.blocks[block][0]));
  if (board.methods[method].oneLabel && sets.every((name) => board.sets[name])) return `for one label a row, and ${sets.join(", ")} has several`;
  if (missing.length > 3) return `${missing.length} blocks of ${sets.join(", ")} were not run`;
  return `not run: ${missing.map((block) => blockName(block)).join("; ")}`;
}

const blockName = (number) => `${board.blocks[number][0]}, ${board.blocks[number][1]}, ${board.blocks[number][2]} bits`;

function rank() {
  const blocks = chosenBlocks(), metric = metricNames.indexOf(state.metric), unranked = new Map();
  for (const method of state.methods) {
    const why = whyUnranked(method, blocks);
    if (why) unranked.set(method, why);
  }
  const methods = blocks.length ? state.methods.filter((method) => !unranked.has(method)) : [];
  const seeds = blocks.map((block) => { // those that all ranked methods have
    const lists = methods.map((method) => seedsOf(method, block).filter((each) => each[1][metric] !== null).map((each) => each[0]));
    return lists.length ? lists[0].filter((seed) => lists.every((list) => list.includes(seed))) : [];
  });
  const value = (method, j, ofSeeds) => {
    const found = seedsOf(method, blocks[j]).filter((each) => !ofSeeds || ofSeeds.includes(each[0]));
    const values = found.map((each) => each[1][metric]).filter((each) => each !== null);
    return values.length ? mean(values) : null;
  };
  const lines = new Map();
  const byBlock = blocks.map((_, j) => ranksOf(methods.map((method) => value(method, j, seeds[j]))));
  for (const method of state.methods) {
    const place = methods.indexOf(method), isRanked = place >= 0;
    const values = blocks.map((_, j) => value(method, j, isRanked ? seeds[j] : null));
    const first = blocks.flatMap((block) => seedsOf(method, block).filter((each) => each[0] === 0));
    const ranks = isRanked ? byBlock.map((ranks) => ranks[place]) : null;
    lines.set(method, {
      method, values, ranks, isRanked,
      rank: ranks ? mean(ranks) : null,
      quality: isRanked ? mean(values) : null,
      learn: isRanked ? mean(first.map((each) => each[2])) : null,
      encode: isRanked ? mean(first.map((each) => each[3])) : null,
    });
  }
  const ranked = methods.map((method) => lines.get(method)).sort((a, b) => a.rank - b.rank);
  const isTested = ranked.length > 2 && blocks.length > 1;
  const k = ranked.length;
  return {
    blocks, seeds, lines, ranked, unranked, isTested,
    difference: isTested ? (board.critical[Math.min(k, board.critical.length - 1)] * Math.sqrt(k * (k + 1) / (6 * blocks.length))) : null,
    friedman: isTested ? friedman(ranked.map((line) => line.ranks)) : null,
  };
}

function groupsOf(ranks, difference) { // first and last of those that are not told apart
  const groups = [];
  ranks.forEach((lowest, first) => {
    let last = first;
    ranks.forEach((each, number) => { if (each - lowest < difference) last = Math.max(last, number); });
    if (last > first && (!groups.length || last > groups.at(-1)[1])) groups.push([first, last]);
  });
  return groups;
}

// --- what is shown ------------------------------------------------------------------------------
const brief = (value) => value === null || value === undefined ? "–" : value.toFixed(3).replace(/^0\./, ".");
const time = (value) => value === null ? "–" : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const listed = (names) => names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");
const nameOf = (method) => board.methods[method].name;

function element(tag, facts = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function settingsOf(method, blocks) {
  const kinds = unique(blocks.map((block) => board.methods[method].settings[board.blocks[block][0]]).filter(Boolean));
  return ["tuned", "default"].filter((kind) => kinds.includes(kind)).join(", ");
}

function show() {
  const found = rank();
  showSentences(found);
  showDiagram(found);
  showTable(found);
  remember();
}

function showSentences(found) {
  const { ranked, blocks, unranked } = found;
  const lead = document.getElementById("lead"), tests = document.getElementById("tests");
  const how = `${ranked.length} ${ranked.length === 1 ? "method" : "methods"} over ${blocks.length} ${blocks.length === 1 ? "block" : "blocks"}.`;
  if (!ranked.length) {
    lead.textContent = blocks.length ? "No method has all blocks that are chosen: leave some out." : "No block is chosen.";
    tests.textContent = "";
  } else {
    const best = ranked.filter((line) => line.rank === ranked[0].rank).map((line) => nameOf(line.method));
    lead.textContent = `${listed(best)} ${best.length > 1 ? "share" : "has"} the best mean rank, ${ranked[0].rank.toFixed(2)} over ${blocks.length} ${blocks.length === 1 ? "block" : "blocks"}.`;
    if (found.isTested) {
      const [statistic, chance] = found.friedman;
      const near = ranked.slice(1).filter((line) => line.rank - ranked[0].rank < found.difference).map((line) => nameOf(line.method));
      tests.textContent = `${how} Friedman's test: χ² = ${statistic.toFixed(1)}, p ${chance < 1e-4 ? "below .0001" : "= " + chance.toFixed(4)}. Critical difference ${found.difference.toFixed(2)}. Not told apart from ${nameOf(ranked[0].method)}: ${listed(near) || "none"}.`;
    } else tests.textContent = `${how} Tests need three methods and two blocks.`;
  }
  const reasons = new Map();
  for (const [method, why] of unranked) reasons.set(why, [...(reasons.get(why) || []), nameOf(method)]);
  const told = [...reasons].map(([why, names]) => `${listed(names)} (${why})`).join("; ");
  document.getElementById("unranked").textContent = told ? `Without a rank: ${told}.` : "";
}

function svg(tag, facts, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(facts)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function showDiagram({ ranked, difference, isTested }) {
  const place = document.getElementById("diagram");
  place.replaceChildren();
  if (!isTested) return;
  const k = ranked.length, width = Math.max(300, place.clientWidth), side = 150;
  if (width < 600) return place.append(narrowDiagram(ranked, difference, width));
  const x = (value) => side + (value - 1) / (k - 1) * (width - 2 * side);
  const groups = groupsOf(ranked.map((line) => line.rank), difference);
  const half = Math.ceil(k / 2), axis = 52, top = axis + 14 + 10 * groups.length, step = 21;
  const height = top + step * half + 8;
  const label = `Critical-difference diagram: ${ranked.map((line) => `${nameOf(line.method)} ${line.rank.toFixed(2)}`).join(", ")}`;
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  const line = (name, points) => drawn.append(svg("polyline", { class: name, points: points.map((point) => point.join(",")).join(" ") }));
  const every = (width - 2 * side) / (k - 1) < 16 ? (k > 20 ? 4 : 2) : 1;
  line("axis", [[x(1), axis], [x(k), axis]]);
  for (let tick = 1; tick <= k; tick++) {
    line("axis", [[x(tick), axis], [x(tick), axis - 5]]);
    if ((tick - 1) % every === 0) drawn.append(svg("text", { x: x(tick), y: axis - 9, "text-anchor": "middle" }, tick));
  }
  line("axis", [[x(1), 14], [x(1 + difference), 14]]);
  for (const end of [1, 1 + difference]) line("axis", [[x(end), 10], [x(end), 18]]);
  drawn.append(svg("text", { x: x(1) - 8, y: 18, "text-anchor": "end" }, `CD ${difference.toFixed(2)}`));
  ranked.forEach((each, number) => {
    const isLeft = number < half, y = top + step * (isLeft ? number : k - 1 - number) + 6;
    const edge = isLeft ? side - 8 : width - side + 8;
    line("lead-line", [[x(each.rank), axis], [x(each.rank), y], [edge, y]]);
    const text = isLeft ? `${nameOf(each.method)} ${each.rank.toFixed(2)}` : `${each.rank.toFixed(2)} ${nameOf(each.method)}`;
    drawn.append(svg("text", { x: isLeft ? edge - 5 : edge + 5, y: y + 4, "text-anchor": isLeft ? "end" : "start", class: board.methods[each.method].isNew ? "new" : "" }, text));
    drawn.append(svg("circle", { cx: x(each.rank), cy: axis, r: 3 }));
  });
  groups.forEach(([first, last], number) => line("group", [[x(ranked[first].rank) - 2, axis + 10 + 10 * number], [x(ranked[last].rank) + 2, axis + 10 + 10 * number]]));
  place.append(drawn);
}

function narrowDiagram(ranked, difference, width) { // a line for each method, and groups beside them
  const k = ranked.length, step = 22, axis = 46, left = 126;
  const groups = groupsOf(ranked.map((line) => line.rank), difference);
  const right = width - 10 - 9 * groups.length, height = axis + step * k + 10;
  const x = (value) => left + (value - 1) / (k - 1) * (right - left);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Critical-difference diagram" });
  const line = (name, from, to) => drawn.append(svg("line", { class: name, x1: from[0], y1: from[1], x2: to[0], y2: to[1] }));
  line("axis", [x(1), axis - 6], [x(k), axis - 6]);
  for (const tick of unique([1, Math.round((k + 1) / 2), k])) drawn.append(svg("text", { x: x(tick), y: axis - 12, "text-anchor": "middle" }, tick));
  line("axis", [x(1), 12], [x(1 + difference), 12]);
  for (const end of [1, 1 + difference]) line("axis", [x(end), 8], [x(end), 16]);
  drawn.append(svg("text", { x: left - 12, y: 16, "text-anchor": "end" }, `CD ${difference.toFixed(2)}`));
  ranked.forEach((each, number) => {
    const y = axis + step * (number + .5);
    drawn.append(svg("text", { x: left - 12, y: y + 4, "text-anchor": "end", class: board.methods[each.method].isNew ? "new" : "" }, `${nameOf(each.method)} ${each.rank.toFixed(2)}`));
    line("lead-line", [left - 6, y], [x(each.rank), y]);
    drawn.append(svg("circle", { cx: x(each.rank), cy: y, r: 3.5 }));
  });
  groups.forEach(([first, last], number) => line("group", [right + 12 + 9 * number, axis + step * (first + .5) - 5], [right + 12 + 9 * number, axis + step * (last + .5) + 5]));
  return drawn;
}

function showTable(found) {
  const { blocks, lines, ranked, seeds } = found, table = document.getElementById("table");
  const heading = (key, text, facts = {}) => element("th", { scope: "col", ...facts }, element("button", { type: "button", "aria-pressed": String(state.sort === key), onclick: () => sortBy(key) }, text, state.sort === key ? (state.down ? " ▾" : " ▴") : ""));
  const sets = unique(blocks.map((block) => board.blocks[block][0]));
  const facts = [["rank", "mean rank"], ["quality", `mean ${board.metrics[state.metric]}`], ["learn", "learn, µs a row"], ["encode", "encode, µs an item"]];
  const groupRow = element("tr", {}, element("td", { colspan: 3 + facts.length }), ...sets.map((name) => element("th", { class: "set first", scope: "colgroup", colspan: blocks.filter((block) => board.blocks[block][0] === name).length }, name)));
  const several = state.bits.length > 1;
  const isFirst = (j) => j === 0 || board.blocks[blocks[j]][0] !== board.blocks[blocks[j - 1]][0];
  const head = element("tr", {}, element("td"), heading("name", "method", { class: "name" }), element("th", { scope: "col", class: "settings" }, "settings"),
    ...facts.map(([key, text]) => heading(key, text)),
    ...blocks.map((block, j) => heading(`block ${block}`, board.blocks[block][1] + (several ? `, ${board.blocks[block][2]}` : ""), { class: isFirst(j) ? "first" : null })));
  table.tHead.replaceChildren(groupRow, head);
  const best = blocks.map((_, j) => Math.max(...ranked.map((line) => line.values[j])));
  const keyed = (line) => state.sort === "name" ? nameOf(line.method).toLowerCase() : state.sort.startsWith("block ") ? line.values[blocks.indexOf(Number(state.sort.slice(6)))] : line[state.sort];
  const order = [...lines.values()].sort((a, b) => {
    const [left, right] = [keyed(a), keyed(b)];
    if (state.sort !== "name" && (left ?? null) === null) return (right ?? null) === null ? 0 : 1;
    if (state.sort !== "name" && (right ?? null) === null) return -1;
    return (left < right ? -1 : left > right ? 1 : 0) * (state.down ? -1 : 1);
  });
  table.tBodies[0].replaceChildren(...order.map((line) => {
    const place = line.isRanked ? 1 + ranked.filter((other) => other.rank < line.rank).length : "–";
    return element("tr", { class: [line.isRanked ? "" : "out", board.methods[line.method].isNew ? "new" : ""].join(" ").trim() || null, "data-method": board.methods[line.method].path },
      element("td", {}, String(place)), element("th", { scope: "row", class: "name" }, nameOf(line.method)), element("td", { class: "settings" }, settingsOf(line.method, blocks)),
      element("td", {}, line.rank === null ? "–" : line.rank.toFixed(2)), element("td", {}, brief(line.quality)), element("td", {}, time(line.learn)), element("td", {}, time(line.encode)),
      ...line.values.map((value, j) => {
        const isBest = line.isRanked && ranked.length > 1 && value === best[j];
        const shown = isBest ? element("b", {}, brief(value)) : brief(value);
        const facts = { class: isFirst(j) ? "first" : null };
        if (value === null) return element("td", facts, "–");
        const about = line.ranks ? `rank ${line.ranks[j]} by seed ${listed(seeds[j].map(String))}` : "not ranked";
        return element("td", facts, element("button", { type: "button", title: about, "aria-haspopup": "dialog", onclick: () => showDetail(line.method, blocks[j], about) }, shown));
      }));
  }));
}

function showDetail(method, block, about) {
  const detail = document.getElementById("detail"), facts = board.methods[method], cells = seedsOf(method, block);
  const row = (seed, quality, learn, encode) => element("tr", {}, element("th", { scope: "row" }, `seed ${seed}`), ...quality.map((value) => element("td", {}, brief(value))), element("td", {}, time(learn)), element("td", {}, time(encode)));
  const head = element("tr", {}, element("td"), ...[...Object.values(board.metrics), "learn, µs a row", "encode, µs an item"].map((text) => element("th", { scope: "col" }, text)));
  detail.replaceChildren(
    element("button", { type: "button", "aria-label": "Close", onclick: () => detail.hidePopover() }, "×"),
    element("h3", {}, `${facts.name}, ${blockName(block)}`),
    element("p", { class: "quiet" }, `${facts.settings[board.blocks[block][0]]} settings, ${about}; streamhash ${unique(cells.map((each) => each[4])).join(", ")}, ${unique(cells.map((each) => each[5])).join(", ")}`),
    element("div", { class: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...cells.map((each) => row(...each.slice(0, 4)))))),
    element("pre", {}, ...cells.flatMap((each) => [...each[6].split(" ").flatMap((word) => [element("span", {}, word), " "]), "\n"])));
  detail.showPopover();
}

function sortBy(key) {
  if (state.sort === key) state.down = !state.down;
  else { state.sort = key; state.down = key === "quality" || key.startsWith("block "); }
  show();
}

// --- choices ------------------------------------------------------------------------------------
function choosePart(name) {
  const part = board.parts.find((each) => each.name === name);
  Object.assign(state, { part: name, data: [...part.data], streams: [...part.streams], bits: [...part.bits] });
}

function showChoices() {
  const option = (place, kind, value, text, checked, onchange) => place.append(element("label", {}, element("input", { type: kind, name: place.id, value, checked, onchange }), text));
  const places = Object.fromEntries(["parts", "metrics", "data", "streams", "bits", "methods"].map((id) => [id, document.getElementById(id)]));
  for (const place of Object.values(places)) place.replaceChildren();
  for (const part of board.parts) option(places.parts, "radio", part.name, part.title, state.part === part.name, () => { choosePart(part.name); update(); });
  for (const name of metricNames) option(places.metrics, "radio", name, board.metrics[name], state.metric === name, () => { state.metric = name; update(); });
  for (const kind of ["data", "streams", "bits", "methods"]) {
    for (const value of all[kind]) {
      const text = kind === "methods" ? nameOf(value) : String(value);
      option(places[kind], "checkbox", value, text, state[kind].includes(value), (event) => {
        state[kind] = all[kind].filter((each) => each === value ? event.target.checked : state[kind].includes(each));
        if (kind !== "methods") state.part = null;
        update(event.target);
      });
    }
  }
}

function update(from) {
  const focused = document.activeElement;
  if (!from) showChoices();
  else for (const input of document.querySelectorAll("#parts input")) input.checked = input.value === state.part;
  if (focused && !focused.isConnected && focused.name) document.querySelector(`input[name="${focused.name}"][value="${CSS.escape(focused.value)}"]`)?.focus();
  show();
}

// The address holds what is chosen, so that it can be sent to others.
function remember() {
  const words = new URLSearchParams({ metric: state.metric, sort: state.sort, down: state.down ? 1 : 0 });
  if (state.part) words.set("ranking", state.part);
  else for (const kind of ["data", "streams", "bits"]) words.set(kind, state[kind].join("|"));
  const off = all.methods.filter((method) => !state.methods.includes(method));
  if (off.length) words.set("without", off.map((method) => board.methods[method].path).join("|"));
  try { history.replaceState(null, "", "#" + words); } catch { /* a page in a frame may not */ }
}

function recall() {
  const words = new URLSearchParams(location.hash.slice(1));
  choosePart(board.parts.some((part) => part.name === words.get("ranking")) ? words.get("ranking") : board.parts[0].name);
  if (!words.has("ranking") && words.has("data")) {
    state.part = null;
    for (const kind of ["data", "streams", "bits"]) {
      const wanted = (words.get(kind) || "").split("|");
      state[kind] = all[kind].filter((value) => wanted.includes(String(value)));
    }
  }
  if (metricNames.includes(words.get("metric"))) state.metric = words.get("metric");
  const sort = words.get("sort") || "rank";
  if (["rank", "name", "quality", "learn", "encode"].includes(sort) || /^block \d+$/.test(sort)) state.sort = sort;
  state.down = words.get("down") === "1";
  const off = (words.get("without") || "").split("|");
  state.methods = all.methods.filter((method) => !off.includes(board.methods[method].path));
}

document.getElementById("alpha").textContent = String(board.alpha).replace(/^0/, "");
document.getElementById("machines").textContent = board.machines.join(", ");
recall();
update();
let drawnWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawnWidth) { drawnWidth = innerWidth; showDiagram(rank()); } });
