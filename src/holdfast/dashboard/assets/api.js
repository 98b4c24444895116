// Talking to the server: JSON, and streams that are opened again when they break.

export const session = { user: "", namespace: "", csrf: "", changes: false, links: false, server: "", kinds: [], planner: [] };

export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the server answered ${status}`);
    this.status = status;
    this.hint = body.hint || "";
    this.problems = body.problems || [];
  }
}

async function send(method, path, body) {
  const headers = { accept: "application/json" };
  if (method !== "GET") headers["X-Holdfast-Csrf"] = session.csrf;
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new Refused(0, { error: "the dashboard does not answer", hint: "is its process running?" });
  }
  const read = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, read);
  return read;
}

export const get = (path) => send("GET", path);
export const post = (path, body = {}) => send("POST", path, body);
export const remove = (path) => send("DELETE", path);

export async function identify() {
  const known = await get("/api/session");
  if (known.user === null) throw new Refused(401, { error: "this browser has no session" });
  Object.assign(session, known);
}

export async function begin(proof) {
  Object.assign(session, await post("/api/session", proof));
}

const FIRST = 500;
const LONGEST = 10000;

// A stream of changes.  `on` has a function for each event, `state` is called with "live", "lost" or a Refused.
export class Stream {
  constructor(query, on, state) {
    this.query = query;
    this.on = on;
    this.state = state;
    this.since = "";
    this.wait = FIRST;
    this.closed = false;
    this.hidden = () => this.visibility();
    document.addEventListener("visibilitychange", this.hidden);
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    const query = new URLSearchParams(this.query);
    if (this.since) query.set("since", this.since);
    const source = new EventSource(`/api/stream?${query}`);
    this.source = source;
    source.onopen = () => { this.wait = FIRST; this.state("live"); };
    source.onerror = () => this.broken(source);
    source.addEventListener("failed", (event) => this.failed(source, JSON.parse(event.data)));
    for (const [name, handler] of Object.entries(this.on)) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) this.since = event.lastEventId;
        handler(JSON.parse(event.data));
      });
    }
  }

  // A browser asks again by itself only after some failures, so every failure is handled here.
  async broken(source) {
    if (this.closed || source !== this.source) return;
    source.close();
    this.source = null;
    this.state("lost");
    try {
      await identify();
    } catch (error) {
      if (error.status === 401) { this.state(error); return; }
    }
    if (this.closed || document.hidden) return;
    this.timer = setTimeout(() => this.open(), this.wait * (0.8 + 0.4 * Math.random()));
    this.wait = Math.min(this.wait * 2, LONGEST);
  }

  // The server cannot send what is asked for now; it may be there later.
  failed(source, body) {
    source.close();
    if (this.closed || source !== this.source) return;
    this.source = null;
    this.state(new Refused(body.status, body));
    this.timer = setTimeout(() => this.open(), LONGEST);
  }

  // A browser has few connections to one server: a tab that is not seen gives its own back.
  visibility() {
    clearTimeout(this.timer);
    if (document.hidden) {
      this.timer = setTimeout(() => { this.source?.close(); this.source = null; }, 30000);
    } else if (!this.source) {
      this.wait = FIRST;
      this.open();
    }
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.hidden);
    this.source?.close();
  }
}
