// The planner: numbers in, the plan of the engine and a film of its simulation out.

import { post, session } from "./api.js";
import { fill, h, s, span } from "./dom.js";
import { plan } from "./plans.js";

const FIELDS = {
  replicas: ["Replicas", "number", "6"],
  strategy: ["Strategy", "select", "RollingUpdate"],
  maxSurge: ["Max surge", "text", "1"],
  maxUnavailable: ["Max unavailable", "text", "0"],
  minAvailable: ["Floor (min available)", "text", "", { placeholder: "replicas − max unavailable" }],
  pauseDuration: ["Pause between batches", "text", "", { placeholder: "none" }],
};
const FAULTS = {
  crash: ["Share of starts that crash", "number", "0", { min: 0, max: 1, step: 0.05 }],
  slow: ["Share of starts that are slow", "number", "0", { min: 0, max: 1, step: 0.05 }],
  readyAfter: ["Ready after", "text", "8s"],
  promoteAfter: ["Promoted after", "text", "15s"],
  seed: ["Seed", "number", "7", { min: 0 }],
};
const STATES = ["available", "settling", "unready", "dead", "terminating"];
const AGES = ["old", "new", "other"];

export function open(root, query, context) {
  context.title("Planner");
  const kind = session.planner[0];
  if (!kind) {
    fill(root, h("p", { class: "empty" }, "No kind can be planned without a cluster."));
    return { close() {}, key: () => false };
  }
  const inputs = {};
  let timer = null, film = null, asked = 0;

  function field(name, [label, type, value, more]) {
    const id = `plan-${name}`;
    const given = query.get(name) ?? value;
    const props = { id, name, "aria-describedby": `${id}-wrong`, autocomplete: "off", oninput: later, ...more };
    const input = type === "select"
      ? h("select", { ...props, onchange: later }, kind.strategies.map((each) => h("option", { value: each }, each)))
      : h("input", { ...props, type });
    input.value = given;
    inputs[name] = input;
    return h("div", { class: "field" }, h("label", { for: id }, label), input, h("p", { class: "wrong", id: `${id}-wrong` }));
  }

  const broken = h("input", { type: "checkbox", id: "plan-broken", checked: query.get("broken") === "1", onchange: later });
  const output = h("div", { class: "wide planner-output", "aria-live": "off" });
  const known = Object.entries(FIELDS).filter(([name]) => kind.settings.includes(name));
  fill(root,
    h("h1", {}, "Planner"),
    h("div", { class: "columns reversed" },
      h("form", { class: "card narrow planner-form", onsubmit: (event) => { event.preventDefault(); now(); } },
        h("h2", {}, "Rollout"), known.map(([name, each]) => field(name, each)), field("current", ["Replicas that run now", "number", "", { min: 0, placeholder: "as desired" }]),
        h("h2", {}, "What goes wrong"), Object.entries(FAULTS).map(([name, each]) => field(name, each)),
        h("label", { class: "check" }, broken, "The new revision never becomes ready")),
      output));

  function later() {
    clearTimeout(timer);
    timer = setTimeout(now, 200);
  }

  async function now() {
    const settings = {};
    for (const [name] of known) {
      const text = inputs[name].value.trim();
      if (text) settings[name] = /^\d+$/.test(text) && name !== "pauseDuration" ? Number(text) : text;
    }
    const body = { resource: kind.resource, asked: {
      settings, broken: broken.checked, crash: Number(inputs.crash.value) || 0, slow: Number(inputs.slow.value) || 0,
      readyAfter: inputs.readyAfter.value || "8s", promoteAfter: inputs.promoteAfter.value || "15s", seed: Math.max(0, Math.floor(Number(inputs.seed.value) || 0)),
      ...(inputs.current.value ? { current: Math.max(0, Math.floor(Number(inputs.current.value))) } : {}),
    } };
    for (const element of root.querySelectorAll(".wrong")) element.textContent = "";
    for (const input of Object.values(inputs)) input.removeAttribute("aria-invalid");
    const mine = ++asked;
    try {
      const answer = await post("/api/plan", body);
      if (mine === asked) show(answer);
    } catch (error) {
      if (mine !== asked) return;
      if (error.status === 429) { timer = setTimeout(now, 1000); return; }
      film?.stop();
      const rest = error.problems.filter((each) => !mark(each));
      if (!error.problems.length || rest.length) fill(output, h("p", { class: "callout bad" }, rest.map((each) => each.message).join("; ") || error.message));
      if (error.status === 401) context.connection(error);
    }
  }

  function mark(problem) {
    const element = document.getElementById(`plan-${problem.setting}-wrong`);
    if (!element) return false;
    element.textContent = problem.message;
    inputs[problem.setting]?.setAttribute("aria-invalid", "true");
    return true;
  }

  function show(answer) {
    film?.stop();
    film = new Film(answer.simulation);
    fill(output, h("section", { class: "card" }, h("h2", {}, "Simulation"), film.element), h("section", { class: "card" }, h("h2", {}, "Plan"), plan(answer.plan)));
    film.play();
  }

  now();
  return {
    close() { clearTimeout(timer); asked = -1; film?.stop(); },
    key(event) {
      if (event.key === " " && film && !event.target.closest("button")) { film.toggle(); return true; }
      return false;
    },
  };
}

// A simulation as a moving picture, which a reader can stop and go through.
class Film {
  constructor(run) {
    this.run = run;
    this.frames = run.frames;
    this.end = this.frames.at(-1)?.seconds || 1;
    this.revisions = Object.keys(this.frames.at(-1)?.revisions || {});
    this.at = 0;
    this.running = null;
    this.top = Math.max(1, ...this.frames.map((frame) => Math.max(frame.ready, frame.maxLive || 0)));
    this.button = h("button", { type: "button", class: "primary", onclick: () => this.toggle() }, "Pause");
    this.slider = h("input", { type: "range", min: 0, max: this.frames.length - 1, value: 0, "aria-label": "Moment of the simulation", oninput: () => { this.stop(); this.draw(Number(this.slider.value)); } });
    this.picture = h("div", { class: "film-cells" });
    this.words = h("p", { class: "because" });
    this.log = h("ol", { class: "film-log" });
    this.cursor = s("line", { y1: 6, y2: 108, class: "cursor" });
    const outcome = `${run.ending}: ${run.because.message}`;
    this.element = h("div", { class: "film" },
      h("p", { class: run.ending === "completed" ? "callout good" : "callout warn" }, h("b", {}, outcome), `. Lowest ready ${run.lowestReady}, floor ${run.floor}, ${span(run.seconds)}, ${run.crashes} crashes${run.belowFloorByOthers.times ? `, below the floor ${run.belowFloorByOthers.times} times because of crashes` : ""}.`),
      h("div", { class: "film-controls" }, this.button, this.slider), this.words, this.picture, this.chart(), this.log);
  }

  x(seconds) { return 26 + (seconds / this.end) * 684; }
  y(number) { return 108 - (number / this.top) * 100; }

  chart() {
    const path = (value) => this.frames.map((frame, index) => {
      const until = this.frames[index + 1]?.seconds ?? this.end;
      const y = this.y(value(frame)).toFixed(1);
      return `${index ? "L" : "M"}${this.x(frame.seconds).toFixed(1)} ${y}L${this.x(until).toFixed(1)} ${y}`;
    }).join("");
    const area = `${path((frame) => frame.ready)}L${this.x(this.end)} 108L26 108Z`;
    return h("figure", { class: "chart" }, s("svg", { viewBox: "0 0 720 126", role: "img", "aria-label": `Ready replicas over ${span(this.end)}: lowest ${this.run.lowestReady}, floor ${this.run.floor}` },
      s("path", { d: area, class: "area new" }), s("path", { d: path((frame) => frame.ready), class: "line" }), s("path", { d: path((frame) => frame.floor), class: "floor" }), this.cursor,
      s("text", { x: 20, y: this.y(this.run.floor) + 3, class: "axis end" }, this.run.floor), s("text", { x: 26, y: 122, class: "axis" }, "0s"), s("text", { x: 710, y: 122, class: "axis end" }, span(this.end))));
  }

  draw(index) {
    this.at = index;
    const frame = this.frames[index];
    this.slider.value = String(index);
    this.slider.setAttribute("aria-valuetext", `${span(frame.seconds)}: ${frame.what}`);
    this.cursor.setAttribute("x1", this.x(frame.seconds));
    this.cursor.setAttribute("x2", this.x(frame.seconds));
    fill(this.words, h("b", {}, span(frame.seconds)), ` ${frame.because.message} `, h("span", { class: frame.ready < frame.floor ? "bad" : "muted" }, `${frame.ready} ready, floor ${frame.floor}, at most ${frame.maxLive}`));
    fill(this.picture, this.revisions.map((revision, at) => {
      const counts = frame.revisions[revision] || {};
      const cells = STATES.flatMap((state) => Array(Math.min(counts[state] || 0, 250)).fill(state));
      return h("div", { class: "film-row" }, h("span", {}, revision), h("ul", { class: "pods", "aria-label": `${revision}: ${cells.length} replicas` }, cells.map((state) => h("li", { class: `cell ${AGES[at] || "other"} ${state}`, title: state }))));
    }));
    const from = Math.max(0, index - 5);
    fill(this.log, this.frames.slice(from, index + 1).map((each) => h("li", { class: each.actor }, h("span", { class: "muted" }, span(each.seconds)), ` ${each.what}`)));
  }

  play() {
    this.stop();
    if (this.at >= this.frames.length - 1) this.at = 0;
    this.draw(this.at);
    const pace = Math.max(40, Math.min(400, 12000 / this.frames.length));
    this.button.textContent = "Pause";
    this.running = setInterval(() => {
      if (this.at >= this.frames.length - 1) { this.stop(); return; }
      this.draw(this.at + 1);
    }, matchMedia("(prefers-reduced-motion: reduce)").matches ? 1000 : pace);
  }

  stop() {
    clearInterval(this.running);
    this.running = null;
    this.button.textContent = "Play";
  }

  toggle() { if (this.running) this.stop(); else this.play(); }
}
