// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");

export const count = (n) => whole.format(n);

const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

/** A count in few characters: 950, 60K, 1.2M. */
export const shortCount = (n) => short.format(n);

/** "1 item", "2,000 items". */
export const counted = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** A share as three decimals without the zero, as in the tables of the documents. */
export const share = (value) =>
  Number.isFinite(value) ? value.toFixed(3).replace(/^(-?)0\./, "$1.") : "–";

/** A probability as people say it. */
export const percent = (value) =>
  !Number.isFinite(value)
    ? "–"
    : value > 0.995 && value < 1
      ? "> 99 %"
      : value < 0.005 && value > 0
        ? "< 1 %"
        : `${Math.round(value * 100)} %`;

export function bytes(n) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; n >= 1000 && i < units.length - 1; i += 1) n /= 1000;
  return `${i && n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function ago(time) {
  const seconds = Math.round(Date.now() / 1000 - time);
  return seconds < 1 ? "just now" : `${seconds < 10 ? `${seconds} s` : duration(seconds)} ago`;
}

export const clock = (time, seconds = true) =>
  new Date(time * 1000).toLocaleTimeString("en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(seconds && { second: "2-digit" }),
  });

/** A day as people write it: 17 Nov. */
export const day = (time) =>
  new Date(time * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });

/** A label or an id, whatever JSON says it is. */
export const plain = (value) =>
  value === null || value === undefined
    ? "none"
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);

/** Of what the service says, the part that is meant for people: without the place in the code. */
export function sentence(message) {
  const text = message.replace(/^\w+(\.\w+)*: /, "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A round number from `value` up: 1, 2 or 5 times a power of ten. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}
