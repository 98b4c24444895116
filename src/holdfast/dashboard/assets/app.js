// The dashboard: which page is shown, who looks at it, and the keys.

import { begin, identify, post, remove, Refused, session } from "./api.js";
import { fill, h, tick, toast } from "./dom.js";
import * as object from "./object.js";
import * as overview from "./overview.js";
import * as planner from "./planner.js";

const main = document.getElementById("main");
let shown = null;

const PAGES = [
  { label: "Overview", href: "#/", is: (path) => path === "" || path[0] === "o" },
  { label: "Planner", href: "#/plan", is: (path) => path[0] === "plan" },
];

function parse() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  return { parts, query: new URLSearchParams(query || "") };
}

function show() {
  const { parts, query } = parse();
  shown?.close();
  main.replaceChildren();
  fill(document.getElementById("nav"), PAGES.map((page) => {
    const current = page.href === "#/plan" ? parts[0] === "plan" : parts[0] !== "plan";
    return h("a", { href: page.href, "aria-current": current ? "page" : null }, page.label);
  }));
  if (parts[0] === "o" && parts.length === 4) {
    const [, resource, namespace, name] = parts;
    shown = object.open(main, { resource, namespace: namespace === "-" ? "" : namespace, name }, context);
  } else if (parts[0] === "plan") {
    shown = planner.open(main, query, context);
  } else {
    shown = overview.open(main, query, context);
  }
}

const context = {
  connection(state) {
    const element = document.getElementById("connection");
    if (state instanceof Refused) {
      element.className = "connection lost";
      element.textContent = { 404: "", 503: "The API server does not answer" }[state.status] ?? state.message;
      if (state.status === 401) signIn(state.message);
      return;
    }
    element.className = `connection ${state}`;
    element.textContent = state === "live" ? "Live" : "Connection lost, trying again";
  },
  trouble(text) {
    const element = document.getElementById("notice");
    element.hidden = !text;
    element.textContent = text;
  },
  title(text) {
    document.title = text ? `${text} · Holdfast` : "Holdfast";
  },
};

// --- signing in

function signIn(message) {
  shown?.close();
  shown = null;
  context.title("Sign in");
  document.getElementById("nav").replaceChildren();
  const problem = h("p", { class: "wrong", role: "alert" }, message || "");
  const field = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", placeholder: "eyJhbGciOi…" });
  const place = h("input", { id: "namespace", autocomplete: "off", spellcheck: "false", placeholder: "all namespaces" });
  const form = h("form", { class: "card login", onsubmit: async (event) => {
    event.preventDefault();
    try {
      await begin({ token: field.value, namespace: place.value });
      start();
    } catch (error) {
      problem.textContent = error.hint ? `${error.message}: ${error.hint}` : error.message;
    }
  } },
  h("h1", {}, "Sign in"),
  problem,
  h("p", { class: "muted" }, "Open the link that ", h("code", {}, "holdfast up"), " or ", h("code", {}, "holdfast dashboard"), " printed. A link signs one browser in."),
  h("label", { for: "token" }, "Or enter a bearer token of the cluster"),
  field,
  h("label", { for: "namespace" }, "Only this namespace, if the token may see no other"),
  place,
  h("button", { class: "primary", type: "submit" }, "Sign in"));
  fill(main, form);
  field.focus();
}

function start() {
  const user = document.getElementById("identity");
  fill(user,
    h("span", { title: session.server }, session.user || "signed in"),
    session.namespace ? h("span", { class: "pill" }, session.namespace) : null,
    session.changes ? null : h("span", { class: "pill" }, "read-only"),
    session.links ? h("button", { class: "plain wide-only", type: "button", title: "Copy a link that signs another browser in", onclick: copyLink }, "Link") : null,
    h("button", { class: "plain", type: "button", onclick: signOut }, "Sign out"));
  addEventListener("hashchange", show);
  show();
}

async function copyLink() {
  try {
    const { link } = await post("/api/link");
    await navigator.clipboard.writeText(`${location.origin}/#link=${link}`);
    toast("Copied a link that signs one browser in.");
  } catch (error) {
    toast(error.message, "bad");
  }
}

async function signOut() {
  removeEventListener("hashchange", show);
  shown?.close(); // the server ends the streams of the session
  shown = null;
  try { await remove("/api/session"); } catch { /* it is over in any case */ }
  document.getElementById("identity").replaceChildren();
  signIn("You are signed out.");
}

// --- light and dark

const dark = matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const chosen = localStorage.getItem("theme");
  const value = chosen || (dark.matches ? "dark" : "light");
  document.documentElement.dataset.theme = value;
  document.getElementById("theme").textContent = value === "dark" ? "☾" : "☀";
}

document.getElementById("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  paint();
});
dark.addEventListener("change", paint);

// --- keys

const KEYS = [
  ["/", "Search"],
  ["j  k", "Next and previous row"],
  ["Enter", "Open the row"],
  ["Esc", "Back to the overview, or close a dialog"],
  ["g o", "Overview"],
  ["g p", "Planner"],
  ["t", "Light or dark"],
  ["?", "These keys"],
];

function help() {
  const dialog = h("dialog", { class: "dialog", "aria-labelledby": "keys-title", onclose: () => dialog.remove() },
    h("h2", { id: "keys-title" }, "Keyboard"),
    h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, key.split("  ").map((each) => h("kbd", {}, each))), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", { class: "primary" }, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

document.getElementById("keys").addEventListener("click", help);

let prefix = "";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const key = prefix + event.key;
  prefix = "";
  if (event.key === "g" && key === "g") { prefix = "g"; return; }
  if (key === "go") location.hash = "#/";
  else if (key === "gp") location.hash = "#/plan";
  else if (key === "?") help();
  else if (key === "t") document.getElementById("theme").click();
  else if (shown?.key?.(event)) { /* the page took it */ }
  else if (key === "Escape" && parse().parts.length) location.hash = "#/";
  else return;
  event.preventDefault();
});

// --- the beginning

paint();
setInterval(tick, 1000);
const link = /^#link=(.+)$/.exec(location.hash);
if (link) history.replaceState(null, "", "/#/");
try {
  if (link) await begin({ link: link[1] }).catch(async (error) => { await identify().catch(() => { throw error; }); });
  else await identify();
  start();
} catch (error) {
  signIn(error.status === 401 && !link ? "" : [error.message, error.hint].filter(Boolean).join(": "));
}
