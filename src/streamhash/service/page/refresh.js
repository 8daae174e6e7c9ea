// The refresh: what it would bring and cost, the button that starts it, and how it goes on.

import { api } from "./api.js";
import { el, notice, say } from "./elements.js";
import { count, counted, duration, percent, share } from "./format.js";

const SETTLED = 15_000; // milliseconds after a press of the button: reports may be so old
const NOTHING = "Nothing new was learned since; the model stays.";

/** The button, what it would bring and cost, and how a refresh goes on. */
export function refreshPanel(page) {
  const button = el("button", { type: "button", class: "primary", onclick: start }, "Refresh now");
  const state = el("p", { class: "state", role: "status" });
  const problem = el("div", {});
  const bar = el("progress", { hidden: true, "aria-label": "Refresh" });
  const gain = el("dd", {});
  const cost = el("dd", {});
  const policy = el("dd", {});
  const why = el("p", { class: "quiet" });
  const element = el(
    "section",
    { class: "card refresh", "aria-labelledby": "refresh-title" },
    el("h2", { id: "refresh-title" }, "Refresh"),
    el(
      "dl",
      { class: "pairs" },
      el("div", {}, el("dt", {}, "Estimated gain"), gain),
      el("div", {}, el("dt", {}, "Estimated cost"), cost),
      el("div", {}, el("dt", {}, "By itself"), policy),
    ),
    why,
    button,
    bar,
    state,
    problem,
  );
  const panel = { element, tell, onstart: null };
  let pressed = null; // when, and what served then

  async function start() {
    problem.replaceChildren();
    pressed = { at: Date.now(), model: page.status.serving.model };
    button.disabled = true;
    say(state, "Asking for a refresh");
    try {
      const { running, changed } = await api.refresh();
      if (!running && !changed) finish(NOTHING);
      else {
        pressed.changed = changed;
        panel.onstart?.();
      }
    } catch (error) {
      pressed = null;
      button.disabled = false;
      say(state, "");
      problem.replaceChildren(notice("problem", "The refresh did not start.", error.message));
    }
  }

  function finish(text) {
    pressed = null;
    button.disabled = false;
    say(state, text);
  }

  function tell(status) {
    const { refresh, serving, learner } = status;
    gain.textContent = gainWords(refresh);
    const seconds =
      refresh.cost_seconds < 0.1 ? "less than 0.1 s" : `about ${duration(refresh.cost_seconds)}`;
    cost.textContent = `${seconds} for ${counted(refresh.cost_items, "item")}`;
    policy.textContent = policyWords(refresh.policy);
    const waits = refresh.reason && !refresh.running && refresh.policy !== "manual";
    say(why, waits ? `It waits: ${refresh.reason}.` : "");
    button.disabled = !page.writable || refresh.running || pressed !== null;
    bar.hidden = !refresh.running;
    if (refresh.progress?.total)
      Object.assign(bar, { max: refresh.progress.total, value: refresh.progress.done });
    else bar.removeAttribute("value");
    if (refresh.error)
      problem.replaceChildren(notice("problem", "The last refresh failed.", refresh.error));
    if (!status.writable)
      say(
        state,
        "The service has opened this collection to read only; refresh where it is written.",
      );
    else if (!page.mayWrite) say(state, "The token you gave may read; a refresh needs one that may write.");
    else if (refresh.running) say(state, "A refresh is running. Searches go on meanwhile.");
    else if (pressed !== null) {
      // A report may be a little older than the press: that nothing changed is believed later.
      if (serving.model !== pressed.model) finish(`Model ${serving.model} serves now.`);
      else if (!pressed.changed && Date.now() - pressed.at > SETTLED) finish(NOTHING);
    } else if (refresh.interrupted)
      say(state, "A refresh was interrupted; the next goes on where it was.");
    else if (!serving.model && learner.waiting)
      say(state, `Learns from the ${counted(learner.waiting, "item")} that wait, and serves that.`);
  }

  return panel;
}

/** What a refresh would bring: in precision where that is known, else beside what it costs. */
function gainWords({ precision_gain: precision, precision_error: error, gain, worth }) {
  if (Number.isFinite(precision))
    return `${precision > 0 ? "+" : ""}${share(precision)} of precision${Number.isFinite(error) ? ` (± ${share(error)})` : ""}`;
  if (gain === null || gain === undefined) return "not known yet";
  if (!Number.isFinite(worth)) return gain > 0 ? "answers get better" : "nothing to speak of";
  return worth >= 1 ? "worth more than it costs" : `worth ${percent(worth)} of what it costs`;
}

function policyWords(policy) {
  if (policy === "manual") return "never; only by this button";
  if (policy.startsWith("auto")) return "when precision gains enough for the time it takes";
  if (policy.startsWith("gain")) return `when queries have missed ${policy.split("=")[1]} bits for every item`;
  return `every ${count(Number(policy))} learned items`;
}
