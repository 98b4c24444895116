// A plan as a table: what the engine does in which order, and how low the ready replicas get.

import { h } from "./dom.js";

export function plan(made) {
  if (made.parts) {
    return h("div", { class: "plan" },
      (made.notes || []).map((note) => h("p", { class: "muted" }, note)),
      made.parts.length ? made.parts.map((part) => h("section", {}, h("h4", {}, (part.names || [part.name]).join(", ")), table(part))) : h("p", {}, "No replica is replaced."));
  }
  return h("div", { class: "plan" }, table(made));
}

function table(made) {
  const facts = [
    ["floor", made.floor],
    ["lowest ready", made.lowestReady],
    ["most live", made.maxLive],
    ["duration of pauses", made.duration],
  ];
  return [
    h("dl", { class: "facts inline" }, facts.map(([label, value]) => h("div", { class: label === "lowest ready" && !made.holds ? "bad" : "" }, h("dt", {}, label), h("dd", {}, value)))),
    made.blocked ? h("p", { class: "callout bad" }, h("b", {}, "Blocked: "), made.blocked.message, ". ", made.blocked.remedy) : null,
    made.fixes?.length ? h("p", { class: "muted" }, "It would not be blocked with ", made.fixes.map((fix) => Object.entries(fix).map(([name, value]) => `${name} ${value}`).join(" and ")).join(", or with "), ".") : null,
    (made.warnings || []).map((each) => h("p", { class: "callout warn" }, each.message)),
    made.steps.length
      ? h("div", { class: "scroll-x" }, h("table", { class: "steps" },
        h("thead", {}, h("tr", {}, ["Step", "Times", "Ready after", "Reason"].map((title) => h("th", { scope: "col" }, title)))),
        h("tbody", {}, made.steps.map((step) => h("tr", { class: step.action }, h("td", {}, step.what), h("td", {}, step.repeat > 1 ? `× ${step.repeat}` : ""), h("td", {}, step.ready), h("td", {}, step.because.message))))))
      : h("p", {}, "Nothing has to be done."),
    made.outcome && !made.blocked ? h("p", { class: "muted" }, `Ends: ${made.outcome.message}`) : null,
  ];
}
