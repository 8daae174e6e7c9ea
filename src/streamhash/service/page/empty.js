// Why nothing can be searched yet, and what to do about it.

import { notice, waiting } from "./elements.js";
import { counted } from "./format.js";

export function emptiness(status) {
  if (status === null) return waiting("Asking the service");
  if (status.items === 0) {
    return notice(
      "empty",
      "This collection is empty.",
      "Add items through the service (POST /api/items) or with streamhash.live in Python. They appear here as they come.",
    );
  }
  return notice(
    "empty",
    "No model has been learned yet.",
    `${counted(status.items, "item")} came, ${counted(status.labelled, "of them labelled", "of them labelled")}. Add more labelled items, or refresh in the Live view to learn from those that wait.`,
  );
}
