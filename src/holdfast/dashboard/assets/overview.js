// The overview: every object, troubles first, as a list of which only the visible part is in the page.

import { Stream, session } from "./api.js";
import { address, age, announce, fill, floorBar, h, health, HEALTH, pill } from "./dom.js";

const RANK = { trouble: 0, progressing: 1, good: 2 };
const SPARE = 6;
const NARROW = matchMedia("(max-width: 760px)");
const HEIGHT = () => (NARROW.matches ? 76 : 40);

let kept = { scroll: 0, selected: "" };

export function open(root, query, context) {
  context.title("");
  const rows = new Map();
  let list = [];
  let counts = { trouble: 0, progressing: 0, good: 0 };
  let complete = false;
  let waiting = false;
  let selected = kept.selected;
  const filter = {
    text: query.get("q") || "",
    health: query.get("health") || "",
    namespace: query.get("ns") || "",
    kind: query.get("kind") || "",
    parts: query.get("parts") === "1",
  };

  // --- the head

  const search = h("input", { id: "search", type: "search", value: filter.text, placeholder: "Search names, phases, reasons", "aria-label": "Search", autocomplete: "off", spellcheck: "false", oninput: () => { filter.text = search.value; refilter(); } });
  const namespaces = select("Namespace", "All namespaces", filter.namespace, (value) => { filter.namespace = value; refilter(); });
  const kinds = select("Kind", "All kinds", filter.kind, (value) => { filter.kind = value; refilter(); });
  const parts = h("input", { type: "checkbox", id: "parts", checked: filter.parts, onchange: () => { filter.parts = parts.checked; refilter(); } });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Filter by state" });
  const shownCount = h("span", { class: "muted count", id: "shown-count", role: "status" });

  const table = h("div", { class: "list", role: "table", "aria-label": "Objects", "aria-rowcount": "0" },
    h("div", { class: "row heading", role: "row" },
      ["", "Name", "Phase", "Ready and floor", "What it does or waits for", "Since"].map((title, index) => h("span", { role: "columnheader", class: `c${index}` }, title || h("span", { class: "unseen" }, "State")))));
  const space = h("div", { class: "space", role: "rowgroup" });
  const scroller = h("div", { class: "scroller", tabindex: "0", "aria-label": "Objects" }, space);
  table.append(scroller);
  const empty = h("p", { class: "empty", hidden: true });

  fill(root,
    h("h1", { class: "unseen" }, "Overview"),
    h("div", { class: "tools" }, chips, search, namespaces, kinds, h("label", { class: "check" }, parts, "Parts"), shownCount),
    table, empty);

  function select(label, all, value, change) {
    const element = h("select", { "aria-label": label, onchange: () => change(element.value) }, h("option", { value: "" }, all));
    if (value) element.append(h("option", { value }, value));
    element.value = value;
    return element;
  }

  function options(element, values, all) {
    const wanted = ["", ...values];
    if (wanted.length === element.options.length && wanted.every((each, index) => element.options[index].value === each)) return;
    const value = element.value;
    fill(element, wanted.map((each) => h("option", { value: each }, each || all)));
    if (value && !wanted.includes(value)) element.append(h("option", { value }, value));
    element.value = value;
  }

  function paintChips() {
    const shown = tally();
    fill(chips, Object.entries(HEALTH).map(([name, known]) =>
      h("button", { type: "button", class: `chip ${name}`, "aria-pressed": filter.health === name ? "true" : "false", onclick: () => { filter.health = filter.health === name ? "" : name; refilter(); } },
        h("span", { class: `health ${name}`, "aria-hidden": "true" }, known.mark), h("b", {}, shown[name].toLocaleString("en")), " ", known.label)));
  }

  // --- which rows there are

  const isPart = (row) => !filter.parts && row.owner && row.health !== "trouble";

  function matches(row) {
    if (filter.namespace && row.namespace !== filter.namespace) return false;
    if (filter.kind && row.kind !== filter.kind) return false;
    if (isPart(row)) return false;
    if (!filter.text) return true;
    row.text ??= `${row.kind} ${row.namespace || ""} ${row.name} ${row.phase} ${row.because || ""} ${row.code || ""}`.toLowerCase();
    return filter.text.toLowerCase().split(/\s+/).every((word) => row.text.includes(word));
  }

  function tally() {
    const found = { trouble: 0, progressing: 0, good: 0 };
    for (const row of rows.values()) if (matches(row)) found[row.health]++;
    return found;
  }

  const compare = (a, b) =>
    RANK[a.health] - RANK[b.health] || order(a.namespace || "", b.namespace || "") || order(a.kind, b.kind) || order(a.name, b.name);
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  function refilter() {
    const query = new URLSearchParams();
    for (const [name, value] of [["q", filter.text], ["health", filter.health], ["ns", filter.namespace], ["kind", filter.kind], ["parts", filter.parts ? "1" : ""]]) if (value) query.set(name, value);
    history.replaceState(null, "", `#/${query.size ? `?${query}` : ""}`);
    scroller.scrollTop = 0;
    draw();
  }

  function draw() {
    waiting = false;
    list = [...rows.values()].filter((row) => (!filter.health || row.health === filter.health) && matches(row)).sort(compare);
    options(namespaces, [...new Set([...rows.values()].map((row) => row.namespace).filter(Boolean))].sort(), "All namespaces");
    options(kinds, [...new Set([...rows.values()].map((row) => row.kind))].sort(), "All kinds");
    paintChips();
    table.setAttribute("aria-rowcount", String(list.length + 1));
    shownCount.textContent = list.length === rows.size ? `${rows.size.toLocaleString("en")} objects` : `${list.length.toLocaleString("en")} of ${rows.size.toLocaleString("en")}`;
    table.hidden = complete && !list.length;
    empty.hidden = !table.hidden;
    if (table.hidden) fill(empty, rows.size ? "Nothing matches the filter." : ["There are no objects yet. ", h("code", {}, "holdfast examples"), " lists manifests to try."]);
    context.title(counts.trouble ? `${counts.trouble} in trouble` : "");
    space.style.setProperty("height", `${list.length * HEIGHT()}px`);
    window_();
  }

  // --- the part that is visible

  const drawn = new Map();

  function window_() {
    const height = HEIGHT();
    const first = Math.max(0, Math.floor(scroller.scrollTop / height) - SPARE);
    const last = Math.min(list.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / height) + SPARE);
    const wanted = new Set();
    for (let index = first; index < last; index++) {
      const row = list[index];
      wanted.add(row.id);
      let made = drawn.get(row.id);
      if (!made || made.row !== row) {
        const element = draw_row(row);
        if (made) made.element.replaceWith(element);
        else space.append(element);
        made = { row, element };
        drawn.set(row.id, made);
      }
      made.element.style.setProperty("transform", `translateY(${index * height}px)`);
      made.element.setAttribute("aria-rowindex", String(index + 2));
      made.element.classList.toggle("selected", row.id === selected);
    }
    for (const [id, made] of drawn) if (!wanted.has(id)) { made.element.remove(); drawn.delete(id); }
  }

  function draw_row(row) {
    const because = row.because || "";
    return h("div", { class: `row ${row.health}`, role: "row", data: { id: row.id } },
      h("span", { class: "c0", role: "cell" }, health(row.health)),
      h("span", { class: "c1", role: "cell" },
        h("a", { href: address(row), tabindex: "-1", class: "name" }, row.name),
        h("small", {}, row.kind, row.namespace ? ` · ${row.namespace}` : "", row.owner ? ` · part of ${row.owner.split("/")[1]}` : "")),
      h("span", { class: "c2", role: "cell" }, pill(row.phase, row.health), row.paused ? pill("paused", "warn") : null, row.verb ? pill(`needs ${row.verb}`, "warn") : null),
      h("span", { class: "c3", role: "cell" }, ready(row)),
      h("span", { class: "c4", role: "cell", title: because }, row.health === "good" && !row.because ? "" : because),
      h("span", { class: "c5", role: "cell" }, age(row.since)));
  }

  function ready(row) {
    if (row.floor) return [floorBar(row.floor), h("span", { class: "numbers" }, `${row.floor.ready}/${row.floor.desired}`), row.floors > 1 ? h("small", { title: `the lowest of ${row.floors} floors` }, `of ${row.floors}`) : null];
    if (row.ready !== undefined && row.desired !== undefined) return [floorBar({ ready: row.ready, desired: row.desired }), h("span", { class: "numbers" }, `${row.ready}/${row.desired}`)];
    return null;
  }

  // --- what happens

  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(draw);
  }

  scroller.addEventListener("scroll", () => requestAnimationFrame(window_), { passive: true });
  scroller.addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row && !event.target.closest("a") && !getSelection().toString()) openRow(row.dataset.id);
  });
  const resized = new ResizeObserver(() => later());
  resized.observe(scroller);

  function openRow(id) {
    const row = rows.get(id);
    if (row) { selected = id; location.hash = address(row); }
  }

  function move(by) {
    if (!list.length) return;
    const at = list.findIndex((row) => row.id === selected);
    const next = at < 0 ? (by > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + by));
    selected = list[next].id;
    const height = HEIGHT();
    if (next * height < scroller.scrollTop) scroller.scrollTop = next * height;
    else if ((next + 1) * height > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = (next + 1) * height - scroller.clientHeight;
    window_();
    const row = list[next];
    announce(`${row.kind} ${row.name}, ${HEALTH[row.health].label}, ${row.phase}. ${row.because || ""}`);
  }

  const KEYS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

  let troubled = null;
  const stream = new Stream({}, {
    rows(delta) {
      if (delta.reset) rows.clear();
      for (const row of delta.rows) rows.set(row.id, row);
      for (const id of delta.gone) rows.delete(id);
      counts = delta.counts;
      if (troubled !== null && counts.trouble > troubled) announce(`${counts.trouble} objects are in trouble`);
      troubled = counts.trouble;
      // Of many rows the first are drawn at once, and then all together.
      if (delta.reset || !delta.more) later();
      if (delta.reset && kept.scroll) { draw(); scroller.scrollTop = kept.scroll; }
      root.dataset.rows = String(rows.size);
    },
    state(state) {
      context.trouble(state.trouble);
      complete = !state.loading;
      later();
    },
  }, context.connection);

  if (session.kinds.length) shownCount.textContent = "Loading";

  return {
    close() {
      kept = { scroll: scroller.scrollTop, selected };
      stream.close();
      resized.disconnect();
      context.trouble("");
    },
    key(event) {
      if (event.key === "/") { search.focus(); search.select(); return true; }
      if (event.key in KEYS) { move(KEYS[event.key]); return true; }
      if (event.key === "Enter" && selected && !event.target.closest("button, a")) { openRow(selected); return true; }
      return false;
    },
  };
}
