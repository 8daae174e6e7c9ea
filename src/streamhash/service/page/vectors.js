// Vector files, read in the browser: NumPy's .npy, JSON and CSV. All give rows of numbers.

const LARGEST = 64e6; // bytes

/** What is wrong with a file, in plain words. */
export class FileError extends Error {}

/** Read a file into rows; `width` is what a row must have, null while that is not known. */
export async function readVectors(file, width) {
  if (file.size > LARGEST) {
    throw new FileError(
      `${file.name} is larger than 64 MB; cut out the rows you want to search with.`,
    );
  }
  const kind = file.name.toLowerCase().split(".").pop();
  let rows;
  if (kind === "npy") rows = fromNpy(await file.arrayBuffer());
  else if (kind === "json") rows = fromJson(await file.text());
  else if (["csv", "tsv", "txt"].includes(kind)) rows = fromCsv(await file.text());
  else throw new FileError(`${file.name} is none of .npy, .json and .csv.`);
  check(rows, width, file.name);
  return rows;
}

function check(rows, width, name) {
  if (rows.length === 0) throw new FileError(`${name} holds no vector.`);
  rows.forEach((row, i) => {
    if (row.length !== (width ?? rows[0].length)) {
      const wanted = width
        ? `vectors of this collection have ${width}`
        : `row 1 has ${rows[0].length}`;
      throw new FileError(`Row ${i + 1} of ${name} has ${row.length} numbers; ${wanted}.`);
    }
    const bad = row.findIndex((value) => typeof value !== "number" || !Number.isFinite(value));
    if (bad >= 0) {
      throw new FileError(
        `Row ${i + 1} of ${name} has something in place ${bad + 1} that is no finite number.`,
      );
    }
  });
}

const READERS = {
  f4: (view, at, little) => view.getFloat32(at, little),
  f8: (view, at, little) => view.getFloat64(at, little),
  i1: (view, at) => view.getInt8(at),
  u1: (view, at) => view.getUint8(at),
  i2: (view, at, little) => view.getInt16(at, little),
  u2: (view, at, little) => view.getUint16(at, little),
  i4: (view, at, little) => view.getInt32(at, little),
  u4: (view, at, little) => view.getUint32(at, little),
  i8: (view, at, little) => Number(view.getBigInt64(at, little)),
};

/** Read NumPy's format, versions 1 to 3: one vector, or a matrix of one a row. */
export function fromNpy(buffer) {
  const view = new DataView(buffer);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY
  if (buffer.byteLength < 12 || magic.some((byte, i) => view.getUint8(i) !== byte)) {
    throw new FileError(
      "This is no .npy file: it does not begin like one. Write it with numpy.save.",
    );
  }
  const long = view.getUint8(6) > 1;
  const start = long ? 12 : 10;
  const data = start + (long ? view.getUint32(8, true) : view.getUint16(8, true));
  const header = new TextDecoder().decode(new Uint8Array(buffer).subarray(start, data));
  const [, order, type] = /'descr':\s*'([<>|=])(\w\d+)'/.exec(header) ?? [];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1].match(/\d+/g)?.map(Number);
  const byColumns = /'fortran_order':\s*True/.test(header);
  const read = READERS[type];
  if (!read || !shape || shape.length > 2) {
    throw new FileError("Only arrays of numbers with one or two dimensions can be searched with.");
  }
  const [n, width] = shape.length === 1 ? [1, shape[0]] : shape;
  const size = Number(type.slice(1));
  if (buffer.byteLength < data + n * width * size) {
    throw new FileError("This .npy file ends too early; was it copied whole?");
  }
  const place = (i, j) => (byColumns && shape.length === 2 ? j * n + i : i * width + j);
  return Array.from({ length: n }, (_, i) =>
    Array.from({ length: width }, (_, j) => read(view, data + place(i, j) * size, order !== ">")),
  );
}

/** Read a list of numbers, a list of such lists, or either as "vector" or "vectors" of an object. */
export function fromJson(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FileError("This is no JSON: it could not be read. Write a list of numbers.");
  }
  const rows = value?.vectors ?? value?.vector ?? value;
  if (!Array.isArray(rows)) throw new FileError("This JSON holds no list of numbers.");
  return rows.length && rows.every(Array.isArray) ? rows : rows.length ? [rows] : [];
}

/** Read one vector a line; a first line of names is passed over. */
export function fromCsv(text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  const mark = [",", ";", "\t"].find((each) => lines[0]?.includes(each)) ?? /\s+/;
  const rows = lines.map((line) =>
    line
      .trim()
      .split(mark)
      .map((cell) => (cell.trim() === "" ? NaN : Number(cell))),
  );
  if (rows.length > 1 && rows[0].some(Number.isNaN)) rows.shift();
  return rows;
}
