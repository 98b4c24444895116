// The page of one object: its tree, timeline, conditions, Events, revisions, links and verbs, as they change.

import { Refused, Stream } from "./api.js";
import { front, timeline } from "./charts.js";
import { address, age, count, fill, floorBar, floorWords, h, health, isBroken, pill, progress, spinner } from "./dom.js";
import { buttons } from "./verbs.js";

const TABS = [["state", "State"], ["revisions", "Revisions"], ["yaml", "YAML"]];
const STATES = { available: "available", settling: "settling", unready: "not ready", dead: "dead", terminating: "terminating" };
const FEW = 8;

export function open(root, target, context) {
  context.title(target.name);
  const page = {};
  const open_ = new Set();
  let tab = "state";
  let gone = false;

  const head = h("header", { class: "object-head" }, spinner("Loading"));
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Parts of the page" });
  const panes = {
    state: h("div", { class: "columns" }),
    revisions: h("div", {}),
    yaml: h("div", {}),
  };
  const sections = Object.fromEntries(["summary", "bars", "tree", "timeline", "charts", "tables", "events", "facts", "links", "conditions"].map((name) => [name, h("section", { class: `card sec-${name}`, hidden: true })]));
  fill(panes.state,
    h("div", { class: "wide" }, sections.summary, sections.bars, sections.tree, sections.charts, sections.timeline, sections.tables, sections.events),
    h("aside", { class: "narrow", "aria-label": "Details" }, sections.facts, sections.links, sections.conditions));
  for (const [name, pane] of Object.entries(panes)) { pane.id = `pane-${name}`; pane.setAttribute("role", "tabpanel"); }
  fill(root, h("nav", { class: "crumbs", "aria-label": "Path" }, h("a", { href: "#/" }, "Overview"), h("span", {}, target.resource), h("span", {}, target.namespace || "cluster")), head, tabs, Object.values(panes));

  function section(name, title, ...content) {
    const element = sections[name];
    element.hidden = !content.flat(Infinity).some((each) => each !== null && each !== undefined && each !== "");
    fill(element, title ? h("h2", {}, title) : null, content);
  }

  // --- the head

  function paintHead() {
    const { row } = page.head;
    fill(head,
      h("div", { class: "title" }, health(row.health), h("h1", {}, row.name), h("span", { class: "muted" }, row.kind), pill(gone ? "Deleted" : row.phase, row.health), row.paused ? pill("paused", "warn") : null, row.owner ? h("span", { class: "muted" }, `part of ${row.owner}`) : null),
      h("div", { class: "verbs", role: "toolbar", "aria-label": "Verbs" }, gone ? null : buttons(target, page)));
    const { head: top } = page;
    section("summary", "",
      gone ? h("p", { class: "callout warn" }, "The object is deleted. What is shown is its last state.") : null,
      page.trouble ? h("p", { class: "callout warn" }, page.trouble) : null,
      h("p", { class: "because" }, row.because || top.summary || "It waits for nothing.", row.since ? h("span", { class: "muted" }, " for ", age(row.since)) : null),
      top.remedy ? h("p", { class: "callout bad" }, h("b", {}, "To do: "), top.remedy) : null,
      (top.warnings || []).map((each) => h("p", { class: "callout warn" }, each)),
      top.steps > 1 ? h("p", { class: "muted" }, `${top.strategy}, step ${top.step || 1} of ${top.steps}`) : null,
      floors(top));
    const facts = [
      ...(top.strategy ? [{ label: "strategy", value: top.strategy }] : []),
      ...(row.updated !== undefined && row.desired ? [{ label: "updated", value: `${row.updated} of ${count(row.desired, top.unit || "replica")}` }] : []),
      ...(top.facts || []),
      ...(top.images?.length && !(page.tree || []).some((each) => each.images?.length) ? [{ label: top.images.length > 1 ? "images" : "image", value: top.images.join(" → ") }] : []),
      { label: "generation", value: top.generation || 0 },
    ];
    section("facts", "Facts", h("dl", { class: "facts" }, facts.map((each) => (each.label ? h("div", {}, h("dt", {}, each.label), h("dd", {}, each.value)) : h("div", { class: "whole" }, h("dt", { class: "unseen" }, "note"), h("dd", {}, each.value)))),
      row.created ? h("div", {}, h("dt", {}, "created"), h("dd", {}, age(row.created), " ago")) : null));
  }

  function floors(top) {
    const all = top.floors || [];
    if (!all.length) return null;
    const sorted = [...all].sort((a, b) => a.ready - a.floor - (b.ready - b.floor));
    const shown = open_.has("floors") ? sorted : sorted.slice(0, 4);
    return h("div", { class: "floors" }, shown.map((each) => h("div", { class: `floor-row ${isBroken(each) ? "broken" : ""}` }, floorBar(each, { large: true }), h("span", {}, floorWords(each)))), more("floors", all.length - shown.length, "floor", paintHead));
  }

  function more(name, left, noun, paint) {
    if (left <= 0) return null;
    return h("button", { type: "button", class: "plain more", onclick: () => { open_.add(name); paint(); } }, `Show ${count(left, `more ${noun}`)}`);
  }

  // --- the tree

  const KEY = [["new", "available", "new revision"], ["old", "available", "old revision"], ["other", "available", "between"], ["new", "settling", "settling"], ["new", "unready", "not ready"], ["new", "dead", "dead"], ["new", "terminating", "terminating"]];

  function paintTree() {
    const branches = page.tree || [];
    section("tree", branches.length ? "Tree" : "", branches.length ? [h("div", { class: "tree" }, branches.map((each, index) => branch(each, String(index)))), h("p", { class: "key" }, KEY.map(([age_, state, text]) => h("span", { class: "legend" }, h("i", { class: `cell ${age_} ${state}` }), text)))] : null);
  }

  // What the leaves of the tree are.
  const noun = () => (page.head.leaf === "pods" ? "pod" : page.head.unit || "replica");

  function branch(made, path) {
    const leaves = made.leaves || [];
    const all = open_.has(`pods${path}`);
    const listed = all ? leaves.map((each) => [each]) : alike(leaves.filter((each) => each.why)).slice(0, FEW);
    const left = all ? 0 : leaves.length;
    return h("div", { class: `branch ${made.age}${made.urgent ? " urgent" : ""}` },
      h("div", { class: "branch-head" },
        h("i", { class: `cell ${made.age} available`, "aria-hidden": "true" }),
        h("b", {}, made.name), made.number ? h("span", { class: "muted" }, `#${made.number}`) : null,
        (made.marks || []).map((each) => pill(each)),
        h("span", { class: "muted" }, made.words), made.note ? h("span", { class: "muted" }, made.note) : null,
        made.images?.length ? h("code", { class: "image" }, made.images.join(" → ")) : null),
      made.why ? h("p", { class: "why" }, made.why) : null,
      leaves.length ? h("ul", { class: "pods", "aria-label": `${made.name}: ${made.words}` }, leaves.map((each) => h("li", { class: `cell ${each.age} ${each.state}`, title: `${each.name}: ${STATES[each.state]}${each.node ? ` on ${each.node}` : ""}${each.why ? `; ${each.why}` : ""}` }, h("span", { class: "unseen" }, `${each.name} ${STATES[each.state]}`)))) : null,
      made.hidden ? h("p", { class: "muted" }, `and ${count(made.hidden, noun())} more, which are counted and not shown`) : null,
      listed.length ? h("div", { class: "scroll-x" }, h("table", { class: "podtable" }, h("thead", { class: "unseen" }, h("tr", {}, ["Name", "State", "Ready", "Node", "Age", "Restarts", "Reason"].map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, listed.map((group) => leaf(group, made))))) : null,
      left ? h("button", { type: "button", class: "plain more", onclick: () => { open_.add(`pods${path}`); paintTree(); } }, `List ${count(left, noun())}`) : null,
      (made.branches || []).length ? h("div", { class: "tree" }, made.branches.map((each, index) => branch(each, `${path}.${index}`))) : null);
  }

  // Pods in the same state for the same reason are one line.
  function alike(leaves) {
    const groups = new Map();
    for (const each of leaves) {
      const key = `${each.state} ${each.age} ${each.why}`;
      groups.set(key, [...(groups.get(key) || []), each]);
    }
    return [...groups.values()];
  }

  function leaf(group, made) {
    const [each] = group;
    const short = made.prefix && each.name.startsWith(made.prefix) ? `…${each.name.slice(made.prefix.length)}` : each.name;
    const resource = page.head.leaf;
    return h("tr", { class: each.state },
      h("td", {}, h("i", { class: `cell ${each.age} ${each.state}`, "aria-hidden": "true" }), " ", resource ? h("a", { href: address({ resource, namespace: target.namespace, name: each.name }), title: each.name }, short) : h("span", { title: each.name }, short), group.length > 1 ? h("span", { class: "muted" }, ` and ${group.length - 1} more`) : null),
      h("td", {}, STATES[each.state]), h("td", {}, each.ready), h("td", { class: "muted" }, each.node), h("td", { class: "muted" }, age(each.created)), h("td", {}, each.restarts ? `${each.restarts}×` : ""), h("td", { class: "why" }, each.why || ""));
  }

  // --- the rest

  function paintLinks() {
    const links = page.links || [];
    const groups = new Map();
    for (const each of links) groups.set(each.relation, [...(groups.get(each.relation) || []), each]);
    section("links", "Related", [...groups].map(([relation, found]) => {
      const shown = open_.has(`links ${relation}`) ? found : found.slice(0, 8);
      return h("div", { class: "relation" }, h("h3", {}, relation), h("ul", {}, shown.map((each) => h("li", {}, each.shown === false ? `${each.kind} ${each.name}` : h("a", { href: address(each) }, each.name), " ", h("small", {}, each.kind)))), more(`links ${relation}`, found.length - shown.length, "object", paintLinks));
    }));
  }

  function paintConditions() {
    const kind = (each) => (each.bad ? (page.head.row.health === "trouble" ? "bad" : "wait") : each.status === "True" ? "good" : "");
    section("conditions", "Conditions", (page.conditions || []).map((each) => h("details", { class: `condition ${kind(each)}`, open: each.bad },
      h("summary", {}, h("span", { class: `dot ${kind(each)}`, "aria-hidden": "true" }), h("b", {}, each.type), " ", h("span", { class: "muted" }, each.status), " ", age(each.since, { class: "muted" })),
      each.reason ? h("p", {}, h("code", {}, each.reason)) : null, each.message ? h("p", {}, each.message) : null)));
  }

  function paintEvents() {
    const events = page.events || [];
    const shown = open_.has("events") ? events : events.slice(0, 12);
    section("events", "Events", shown.length ? h("div", { class: "scroll-x" }, h("table", { class: "events-table" },
      h("thead", {}, h("tr", {}, ["Age", "Reason", "Message"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, shown.map((each) => h("tr", { class: each.warning ? "warning" : "" }, h("td", { class: "muted" }, age(each.last), each.count > 1 ? ` ×${each.count}` : ""), h("td", {}, each.reason), h("td", {}, each.message)))))) : null, more("events", events.length - shown.length, "Event", paintEvents));
  }

  function paintTimeline() {
    if (!page.timeline?.samples?.length) return section("timeline", "");
    return section("timeline", "Timeline", timeline(page.timeline, page.events || []));
  }

  function paintTables() {
    section("tables", "", (page.tables || []).map((each) => [h("h2", {}, each.title), h("div", { class: "scroll-x" }, h("table", {}, h("thead", {}, h("tr", {}, each.columns.map((title) => h("th", { scope: "col" }, title)))), h("tbody", {}, (each.rows || []).map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))))]));
  }

  function paintRevisions() {
    const revisions = page.revisions || [];
    fill(panes.revisions, revisions.length ? revisions.map((each, index) => h("section", { class: "card revision" },
      h("h2", {}, `Revision ${each.number} `, h("code", {}, each.revision), " ", (each.marks || []).map((mark) => pill(mark, mark === "rejected" ? "trouble" : mark === "current" ? "good" : "progressing"))),
      h("p", {}, each.change, " ", each.created ? [age(each.created, { class: "muted" }), h("span", { class: "muted" }, " ago")] : null),
      each.why ? h("p", { class: "callout bad" }, each.why) : null,
      each.diff?.length ? h("details", { open: index === 0 || open_.has(`diff${each.number}`), ontoggle: (event) => { if (event.target.open) open_.add(`diff${each.number}`); else open_.delete(`diff${each.number}`); } }, h("summary", {}, `Changes since revision ${revisions[index + 1]?.number ?? "before"}`), diff(each.diff)) : null)) : h("p", { class: "empty" }, "Objects of this kind keep no earlier revisions."));
  }

  const diff = (lines) => h("pre", { class: "code diff" }, lines.map(([mark, text]) => h("span", { class: mark === "+" ? "added" : mark === "-" ? "removed" : mark === "@" ? "skip-lines" : "" }, mark === "@" ? "⋯" : `${mark} ${text}`, "\n")));

  function paintYaml() {
    fill(panes.yaml, h("section", { class: "card" }, h("pre", { class: "code", tabindex: "0" }, page.yaml || "")));
  }

  function paintTabs() {
    fill(tabs, TABS.map(([name, label]) => h("button", { type: "button", role: "tab", "aria-selected": tab === name ? "true" : "false", "aria-controls": `pane-${name}`, tabindex: tab === name ? "0" : "-1", onclick: () => { tab = name; paintTabs(); }, onkeydown: arrows }, label, name === "revisions" && page.revisions?.length ? ` ${page.revisions.length}` : "")));
    for (const [name, pane] of Object.entries(panes)) pane.hidden = name !== tab;
  }

  function arrows(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = TABS.findIndex(([name]) => name === tab);
    tab = TABS[(at + by + TABS.length) % TABS.length][0];
    paintTabs();
    tabs.querySelector("[aria-selected=true]").focus();
  }

  const PAINT = {
    head: () => { paintHead(); paintConditions(); }, verbs: paintHead, trouble: paintHead, tree: paintTree, links: paintLinks, conditions: paintConditions,
    events: () => { paintEvents(); paintTimeline(); }, timeline: paintTimeline, tables: paintTables,
    bars: () => section("bars", "", (page.bars || []).map(progress)),
    charts: () => section("charts", "", (page.charts || []).map((each) => [h("h2", {}, each.title), front(each)])),
    revisions: () => { paintRevisions(); paintTabs(); }, yaml: paintYaml,
  };

  paintTabs();
  const stream = new Stream(target, {
    page(changed) {
      gone = Boolean(changed.gone);
      Object.assign(page, changed);
      if (!page.head) { fill(head, h("p", { class: "empty" }, page.trouble || "The object does not exist.")); return; }
      const names = gone ? ["head"] : Object.keys(changed);
      for (const paint of new Set(names.map((name) => PAINT[name]).filter(Boolean))) paint();
      root.dataset.object = page.head.row.id;
    },
  }, (state) => {
    if (state instanceof Refused && state.status !== 401 && !page.head) fill(head, h("p", { class: "empty" }, state.message, state.hint ? h("p", {}, state.hint) : null));
    context.connection(state);
  });
  const refresh = setInterval(() => { if (tab === "state" && page.timeline?.samples?.length && !document.hidden) paintTimeline(); }, 5000);

  return {
    close() {
      stream.close();
      clearInterval(refresh);
      context.trouble("");
    },
    key() {
      return false;
    },
  };
}
