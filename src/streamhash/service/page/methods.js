// The methods, as the command line names them; a test holds this list against the library's.

export const METHODS = [
  "sdoh",
  "bsodh",
  "hmoh",
  "hcoh",
  "mihash",
  "osh",
  "adapthash",
  "okh",
  "sdohhc",
  "foh",
  "lemon",
  "athoh",
  "ohweu",
  "ridgehash",
  "frosh",
  "sketchhash",
  "itq",
  "pcah",
  "lsh",
];
