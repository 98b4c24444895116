// Verbs: what each would do is shown, with its plan, before it is confirmed.

import { post, session } from "./api.js";
import { fill, h, toast } from "./dom.js";
import { plan } from "./plans.js";

export function ask(target, verb, page) {
  const order = { ...target, verb: verb.name, full: false, number: null };
  const content = h("div", { class: "dialog-body", "aria-live": "polite" });
  const confirm = h("button", { class: "primary", type: "button", disabled: true, onclick: carryOut }, verb.label);
  const dialog = h("dialog", { class: "dialog wide", "aria-labelledby": "verb-title", onclose: () => dialog.remove() },
    h("h2", { id: "verb-title" }, `${verb.label} ${target.name}`),
    choices(),
    content,
    h("div", { class: "actions" },
      session.changes ? null : h("p", { class: "muted" }, "This dashboard is read-only; it was started without --allow-changes."),
      h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), confirm));
  document.body.append(dialog);
  dialog.showModal();
  preview();

  function choices() {
    if (verb.name === "promote") {
      const box = h("input", { type: "checkbox", onchange: () => { order.full = box.checked; preview(); } });
      return h("label", { class: "check" }, box, "All remaining steps");
    }
    if (verb.name === "undo" && page.revisions?.length) {
      const list = h("select", { onchange: () => { order.number = list.value ? Number(list.value) : null; preview(); } },
        h("option", { value: "" }, "the revision before"),
        page.revisions.filter((each) => !(each.marks || []).includes("target")).map((each) => h("option", { value: each.number }, `${each.number}: ${each.revision} ${each.image || ""}`)));
      return h("label", { class: "field" }, "Return to", list);
    }
    return null;
  }

  async function preview() {
    confirm.disabled = true;
    fill(content, h("p", { class: "muted" }, "Asking the engine what follows"));
    try {
      const answer = await post("/api/verb", { ...order, preview: true });
      confirm.disabled = answer.result !== "changed" || !session.changes;
      fill(content, described(answer));
    } catch (error) {
      fill(content, h("p", { class: "callout bad" }, error.message, error.hint ? `: ${error.hint}` : ""));
    }
  }

  function described(answer) {
    if (answer.result === "unchanged") return h("p", { class: "callout" }, `Nothing changes: it is ${answer.message}.`);
    if (answer.result === "refused") return h("p", { class: "callout warn" }, answer.message, answer.hint ? `. ${answer.hint}` : "");
    return [
      (answer.notes || []).map((note) => h("p", { class: "callout" }, note)),
      answer.plan ? h("section", {}, h("h3", {}, "What follows"), plan(answer.plan)) : null,
      answer.planRefusal ? h("p", { class: "muted" }, `There is no plan to show: ${answer.planRefusal}.`) : null,
      h("details", {}, h("summary", {}, "What is written"), h("pre", { class: "code" }, JSON.stringify(answer.patch, null, 2))),
    ];
  }

  async function carryOut() {
    confirm.disabled = true;
    try {
      const answer = await post("/api/verb", order);
      if (answer.result === "refused") { fill(content, described(answer)); return; }
      toast(`${target.name} ${answer.message}`);
      dialog.close();
    } catch (error) {
      fill(content, h("p", { class: "callout bad" }, error.message, error.hint ? `: ${error.hint}` : ""));
    }
  }
}

export function buttons(target, page) {
  return (page.verbs || []).map((verb) => {
    const usable = !verb.refusal;
    if (!usable && verb.name !== "promote" && /^(already|not) /.test(verb.refusal)) return null;
    return h("button", { type: "button", class: verb.suggested ? "primary" : "", "aria-disabled": usable ? null : "true", title: verb.refusal || "", data: { verb: verb.name }, onclick: () => ask(target, verb, page) }, verb.label);
  });
}

