// Pictures of numbers: ready replicas over time, and points of which none is better than another.

import { clock, h, s, span } from "./dom.js";

const WIDTH = 720;
const HEIGHT = 170;
const PAD = { left: 30, right: 14, top: 22, bottom: 24 };

// Ready replicas over time, new ones below old ones, with the floor as a line and the lowest point marked.
export function timeline(line, events) {
  const samples = (line.samples || []).map(([at, ready, updated, desired, floor]) => ({ at: Date.parse(at), ready, updated: Math.min(updated, ready), desired, floor }));
  if (!samples.length) return h("p", { class: "muted" }, "No replicas are counted for this object.");
  const now = Date.now();
  const started = line.started ? Date.parse(line.started) : samples[0].at;
  let from = Math.min(samples[0].at, now - 15000);
  if (now - started < 6 * 3600e3) from = Math.min(from, started);
  const to = now;
  const top = Math.max(1, ...samples.map((each) => Math.max(each.ready, each.desired, each.floor)));
  const x = (at) => PAD.left + ((at - from) / (to - from)) * (WIDTH - PAD.left - PAD.right);
  const y = (number) => HEIGHT - PAD.bottom - (number / top) * (HEIGHT - PAD.top - PAD.bottom);
  const steps = (value) => {
    let path = "";
    samples.forEach((each, index) => {
      const until = samples[index + 1]?.at ?? to;
      path += `${index ? "L" : "M"}${x(Math.max(from, each.at)).toFixed(1)} ${y(value(each)).toFixed(1)}L${x(until).toFixed(1)} ${y(value(each)).toFixed(1)}`;
    });
    return path;
  };
  const area = (value) => `${steps(value)}L${x(to).toFixed(1)} ${y(0)}L${x(Math.max(from, samples[0].at)).toFixed(1)} ${y(0)}Z`;
  // The lowest point is that of the rollout, not of what was before it.
  const during = samples.filter((each, index) => (samples[index + 1]?.at ?? to) > started);
  const seen = during.reduce((worst, each) => (each.ready < worst.ready ? each : worst), during[0]);
  const lowest = line.lowest ?? seen.ready;
  const floor = samples.at(-1).floor;
  // The operator counts the lowest since the rollout began, which may be before anything was seen here.
  const lowestMark = () => {
    const label = (at) => s("text", { x: Math.min(at + 8, WIDTH - 70), y: Math.min(y(lowest) + 14, HEIGHT - PAD.bottom - 4), class: "axis strong" }, `lowest ${lowest}`);
    if (lowest < seen.ready) return [s("line", { x1: PAD.left, x2: WIDTH - PAD.right, y1: y(lowest), y2: y(lowest), class: "lowest-line" }), label(PAD.left)];
    const at = x(Math.max(from, seen.at));
    return [s("circle", { cx: at, cy: y(seen.ready), r: 4, class: "lowest" }), label(at)];
  };
  const words = `Ready replicas over ${span((to - from) / 1000)}: now ${samples.at(-1).ready} of ${samples.at(-1).desired}, lowest ${lowest}${floor ? `, floor ${floor}` : ""}.`;
  const marks = events.filter((each) => Date.parse(each.last) >= from).slice(0, 60);
  return h("figure", { class: "chart" },
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": words },
      ticks(top).map((number) => [s("line", { x1: PAD.left, x2: WIDTH - PAD.right, y1: y(number), y2: y(number), class: "grid" }), s("text", { x: PAD.left - 6, y: y(number) + 3.5, class: "axis end" }, number)]),
      s("path", { d: area((each) => each.ready), class: "area old" }),
      s("path", { d: area((each) => each.updated), class: "area new" }),
      s("path", { d: steps((each) => each.ready), class: "line" }),
      floor ? s("path", { d: steps((each) => each.floor), class: "floor" }) : null,
      line.started && started >= from ? [s("line", { x1: x(started), x2: x(started), y1: PAD.top, y2: HEIGHT - PAD.bottom, class: "start" }), s("text", { x: Math.min(x(started), WIDTH - 90), y: 12, class: "axis" }, "rollout began")] : null,
      lowestMark(),
      marks.map((each) => s("circle", { cx: x(Date.parse(each.last)), cy: HEIGHT - PAD.bottom, r: 3, class: each.warning ? "event warning" : "event" }, s("title", {}, `${clock(each.last)} ${each.reason}: ${each.message}`))),
      s("text", { x: PAD.left, y: HEIGHT - 6, class: "axis" }, clock(from)),
      s("text", { x: WIDTH - PAD.right, y: HEIGHT - 6, class: "axis end" }, "now")),
    h("figcaption", {}, legend([["area new", "new revision"], ["area old", "all ready"], ...(floor ? [["floor", `floor ${floor}`]] : []), ["lowest", `lowest ${lowest}`]])));
}

const legend = (items) => items.map(([kind, text]) => h("span", { class: "legend" }, h("i", { class: kind }), text));

function ticks(top) {
  const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 5000].find((each) => top / each <= 4) || Math.ceil(top / 4);
  const found = [];
  for (let number = 0; number <= top; number += step) found.push(number);
  return found;
}

// --- a front of configurations

export function front(chart) {
  const width = 720, height = 300, pad = { left: 56, right: 20, top: 16, bottom: 40 };
  const xs = chart.points.map((each) => each.x), ys = chart.points.map((each) => each.y);
  const [x0, x1] = range(xs), [y0, y1] = range(ys);
  const x = (value) => pad.left + ((value - x0) / (x1 - x0)) * (width - pad.left - pad.right);
  const y = (value) => height - pad.bottom - ((value - y0) / (y1 - y0)) * (height - pad.top - pad.bottom);
  const line = chart.points.filter((each) => each.front !== false).sort((a, b) => a.x - b.x);
  const chosen = chart.points.find((each) => each.chosen);
  const words = `${chart.title}: ${chart.points.length} points${chosen ? `; chosen: ${chosen.label}` : ""}`;
  return h("figure", { class: "chart front" },
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words },
      marks(x0, x1).map((value) => [s("line", { x1: x(value), x2: x(value), y1: pad.top, y2: height - pad.bottom, class: "grid" }), s("text", { x: x(value), y: height - pad.bottom + 15, class: "axis middle" }, short(value))]),
      marks(y0, y1).map((value) => [s("line", { x1: pad.left, x2: width - pad.right, y1: y(value), y2: y(value), class: "grid" }), s("text", { x: pad.left - 6, y: y(value) + 3.5, class: "axis end" }, short(value))]),
      s("path", { d: line.map((each, index) => `${index ? "L" : "M"}${x(each.x).toFixed(1)} ${y(each.y).toFixed(1)}`).join(""), class: "front-line" }),
      chart.points.map((each) => s("circle", { cx: x(each.x), cy: y(each.y), r: each.chosen ? 7 : 4.5, tabindex: "0", class: `point ${each.chosen ? "chosen" : ""} ${each.good === false ? "bad" : ""} ${each.front === false ? "behind" : ""}` }, s("title", {}, `${each.label}: ${short(each.x)} ${chart.x}, ${short(each.y)} ${chart.y}`))),
      chosen ? s("text", { x: Math.min(x(chosen.x) + 11, width - 60), y: y(chosen.y) - 9, class: "axis strong" }, "chosen") : null,
      s("text", { x: (pad.left + width - pad.right) / 2, y: height - 6, class: "axis middle" }, chart.x),
      s("text", { x: 12, y: (pad.top + height - pad.bottom) / 2, class: "axis middle", transform: `rotate(-90 12 ${(pad.top + height - pad.bottom) / 2})` }, chart.y)),
    h("figcaption", {}, legend([["point chosen", "chosen"], ["point", "meets the targets"], ["point bad", "does not"]]), chart.note ? h("p", {}, chart.note) : null));
}

function range(values) {
  const low = Math.min(...values), high = Math.max(...values);
  const spare = (high - low || Math.abs(high) || 1) * 0.1;
  return [Math.max(0, low - spare), high + spare];
}

function marks(low, high) {
  const raw = (high - low) / 5, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
  return found;
}

const short = (value) => (Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : String(Math.round(value * 100) / 100));
