// How neighbours are put in order: what a search is asked for, and what its numbers are called.

import { share } from "./format.js";

const long = (value) => (Number.isFinite(value) ? value.toFixed(2) : "–");

/** Each has a name for the address, words for people, what the search is asked, and its number. */
export const SCORINGS = [
  { name: "code", text: "codes: bits that differ", body: {} },
  {
    name: "real",
    text: "codes, the query not rounded to bits",
    body: { query: "real" },
    unit: "distance",
    format: long,
    told: "The query's real values are compared with the bits of the items; the least distance is best.",
  },
  {
    name: "cosine",
    text: "vectors, cosine",
    body: { rescore: 4 },
    unit: "cosine",
    format: share,
    told: "The nearest by codes, put in order by the cosine of their vectors; 1 is best.",
  },
  {
    name: "dot",
    text: "vectors, dot product",
    body: { rescore: 4, metric: "dot" },
    unit: "dot",
    format: long,
    told: "The nearest by codes, put in order by the dot product of their vectors; more is better.",
  },
  {
    name: "euclidean",
    text: "vectors, Euclidean",
    body: { rescore: 4, metric: "euclidean" },
    unit: "distance",
    format: long,
    told: "The nearest by codes, put in order by the distance of their vectors; less is better.",
  },
  {
    name: "projections",
    text: "projections, cosine",
    body: { rescore: 4, by: "projections" },
    unit: "cosine",
    format: share,
    told: "The nearest by codes, put in order by the cosine of the model's real values; 1 is best.",
  },
];
