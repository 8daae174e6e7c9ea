// Asking again and again: later after failures, and not at all while nobody looks.

const LONGEST = 30_000; // milliseconds

/** Call `task` every `every` milliseconds, beginning now; `failed` hears of errors, how long it will be
 * until the next try, and what to call to try at once. */
export function poll(task, every, failed) {
  let timer = null;
  let failures = 0;
  let stopped = false;
  let running = false;

  async function run() {
    if (running || stopped || document.hidden) return;
    running = true;
    clearTimeout(timer);
    try {
      await task();
      failures = 0;
    } catch (error) {
      failures += 1;
      if (!stopped) failed(error, wait(), run);
    }
    running = false;
    if (!stopped) timer = setTimeout(run, wait());
  }

  const wait = () => Math.min(every * 2 ** failures, Math.max(LONGEST, every));
  const seen = () => document.hidden || run();
  document.addEventListener("visibilitychange", seen);
  run();
  return {
    now: run,
    stop() {
      stopped = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
