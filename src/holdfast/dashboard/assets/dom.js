// Building pages: elements whose text is only ever text, and times that stay true.

export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  set(element, props);
  append(element, children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function s(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function set(element, props) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name in PROPERTIES) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
}

const PROPERTIES = { value: 1, checked: 1, disabled: 1, hidden: 1, open: 1, textContent: 1 };

export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// --- times

export function ago(text, now = Date.now()) {
  const then = Date.parse(text);
  return Number.isNaN(then) ? "" : span(Math.max(0, (now - then) / 1000));
}

export function span(seconds) {
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 600) return `${Math.floor(whole / 60)}m${whole % 60 ? `${whole % 60}s` : ""}`;
  if (whole < 7200) return `${Math.floor(whole / 60)}m`;
  if (whole < 172800) return `${Math.floor(whole / 3600)}h`;
  return `${Math.floor(whole / 86400)}d`;
}

// An element that shows an age, which `tick` keeps true.
export function age(text, props) {
  if (!text) return null;
  return h("time", { datetime: text, title: new Date(text).toLocaleString(), ...props, data: { age: text } }, ago(text));
}

export function tick() {
  const now = Date.now();
  for (const element of document.querySelectorAll("time[data-age]")) {
    const text = ago(element.dataset.age, now);
    if (element.textContent !== text) element.textContent = text;
  }
}

export const clock = (text) => new Date(text).toLocaleTimeString([], { hour12: false });

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

// --- small things that every page has

export const HEALTH = {
  trouble: { label: "Trouble", mark: "▲" },
  progressing: { label: "In progress", mark: "◐" },
  good: { label: "Good", mark: "●" },
};

export function health(value) {
  const known = HEALTH[value] || HEALTH.progressing;
  return h("span", { class: `health ${value}`, role: "img", "aria-label": known.label, title: known.label }, known.mark);
}

export function pill(text, kind) {
  return h("span", { class: `pill ${kind || ""}` }, text);
}

// Ready replicas of those that are desired, with the floor as a line.
export function floorBar(floor, options = {}) {
  const { ready, desired } = floor;
  const line = floor.floor ?? 0;
  const top = Math.max(desired, ready, line, 1);
  // A floor that was never reached is not broken: the object is new.
  const broken = isBroken(floor);
  const words = floorWords(floor);
  const bar = h("span", { class: `floorbar ${broken ? "broken" : ""} ${options.large ? "large" : ""}`, role: "img", "aria-label": words, title: words });
  if (top <= (options.large ? 60 : 12)) {
    for (let cell = 0; cell < top; cell++) {
      const state = cell < ready ? (cell < line ? "held" : "spare") : cell < line ? "missing" : "free";
      bar.append(h("i", { class: `${state}${cell === line && line > 0 ? " line" : ""}` }));
    }
    bar.classList.add("cells");
    if (line >= top && line > 0) bar.lastChild.classList.add("line-end");
  } else {
    const percent = (number) => `${(100 * number) / top}%`;
    bar.append(h("b", { style: { width: percent(ready) } }));
    if (line > 0) bar.append(h("u", { style: { left: percent(line) } }));
  }
  return bar;
}

export const isBroken = (floor) => floor.ready < (floor.floor ?? 0) && floor.lowest !== undefined && floor.lowest !== null;

export function floorWords(floor) {
  const parts = [`${floor.ready} of ${floor.desired} ready`];
  if (floor.floor) parts.push(`floor ${floor.floor}`);
  if (floor.lowered) parts.push(`lowered by ${floor.lowered}`);
  if (floor.lowest !== undefined && floor.lowest !== null) parts.push(`lowest ${floor.lowest}`);
  return `${floor.name ? `${floor.name}: ` : ""}${parts.join(", ")}`;
}

export function progress(bar) {
  const known = bar.percent !== null && bar.percent !== undefined;
  return h("div", { class: "progress" },
    h("div", { class: "progress-words" }, h("span", {}, bar.label), h("span", { class: "muted" }, [known ? `${Math.round(bar.percent)} %` : "", bar.words].filter(Boolean).join(" · "))),
    h("progress", known ? { max: 100, value: bar.percent, "aria-label": bar.label } : { "aria-label": bar.label }));
}

export const address = (each) => `#/o/${[each.resource, each.namespace || "-", each.name].map(encodeURIComponent).join("/")}`;

export function announce(text) {
  document.getElementById("live").textContent = text;
}

export function toast(text, kind = "") {
  const element = h("div", { class: `toast ${kind}` }, text);
  document.getElementById("toasts").append(element);
  setTimeout(() => element.remove(), 6000);
}

export const spinner = (text) => h("p", { class: "empty", role: "status" }, text);
