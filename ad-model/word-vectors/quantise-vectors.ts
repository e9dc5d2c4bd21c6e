import { gzipSync } from "node:zlib";
import { z } from "zod";

/**
 * Product quantisation: the dimensions are cut into parts of equal length, k-means finds 256 typical values (centroids)
 * of each part, and a word keeps the number of the nearest centroid. That is one byte a part.
 */
export interface QuantiseOptions {
  /** Shorter parts keep the vectors closer to the whole ones and need more bytes. Must divide the dimensions. */
  readonly partDimensions: number;
  /** How many words k-means reads, evenly spaced in the list. */
  readonly sampleWords: number;
  readonly rounds: number;
}
const QUANTISE_OPTIONS: QuantiseOptions = { partDimensions: 4, sampleWords: 25_000, rounds: 15 };

/** As many as a byte can number. */
const CENTROIDS = 256;
/** Centroids are kept as signed bytes, because the components of the whole vectors are signed bytes too. */
const BYTE_MAX = 127;

/** The vectors that word_vectors.py writes. */
export interface WholeVectors {
  readonly dimensions: number;
  /** A word, a tab and the word's rank; the lower the rank, the commoner the word. */
  readonly lines: readonly string[];
  /** Line by line, one signed byte a dimension. */
  readonly components: Int8Array;
}

const wholeHeaderSchema = z.strictObject({
  dimensions: z.int().min(1),
  words: z.int().min(1),
  wordBytes: z.int().min(1),
});

/** Reads a file of word_vectors.py: a line of JSON, the list of words, the components. Throws on another form. */
export function decodeWholeVectors(file: Buffer): WholeVectors {
  const headerEnd = file.indexOf("\n");
  const header = wholeHeaderSchema.parse(JSON.parse(file.toString("utf8", 0, headerEnd)));
  const { dimensions, words, wordBytes } = header;
  const wordsEnd = headerEnd + 1 + wordBytes;
  return {
    dimensions,
    lines: file.toString("utf8", headerEnd + 1, wordsEnd).split("\n"),
    components: new Int8Array(file.buffer, file.byteOffset + wordsEnd, words * dimensions),
  };
}

/** Keeps at most `wordsMax` words, in their order: first the wanted words, then the commonest of the others. */
export function pruneWords(
  { dimensions, lines, components }: WholeVectors,
  { wanted, wordsMax }: { wanted: ReadonlySet<string>; wordsMax: number },
): WholeVectors {
  const words = lines.map((line, row) => {
    const [word = "", rank = ""] = line.split("\t");
    return { row, rank: wanted.has(word) ? 0 : Number(rank) };
  });
  const kept = words
    .sort((a, b) => a.rank - b.rank || a.row - b.row)
    .slice(0, wordsMax)
    .map(({ row }) => row)
    .sort((a, b) => a - b);
  const keptComponents = new Int8Array(kept.length * dimensions);
  for (const [index, row] of kept.entries()) {
    keptComponents.set(components.subarray(row * dimensions, (row + 1) * dimensions), index * dimensions);
  }
  return { dimensions, lines: kept.map((row) => lines[row] ?? ""), components: keptComponents };
}

/**
 * Quantises the vectors and writes them in the form that WordVectors in the ad server reads. The same vectors and
 * options give the same bytes.
 */
export function quantiseVectors(whole: WholeVectors, options: QuantiseOptions = QUANTISE_OPTIONS): Buffer {
  const { dimensions, lines } = whole;
  const size = options.partDimensions;
  const parts = dimensions / size;
  const codes = new Uint8Array(lines.length * parts);
  const centroids = new Int8Array(CENTROIDS * dimensions);
  for (let part = 0; part < parts; part += 1) {
    const values = { size, rows: columnsOf(whole, part * size, size) };
    const found = findCentroids(values, options);
    centroids.set(found, part * CENTROIDS * size);
    nearestOf(values, found).forEach((code, word) => {
      codes[word * parts + part] = code;
    });
  }
  const wordList = Buffer.from(lines.join("\n"));
  const header = { dimensions, partDimensions: size, words: lines.length, wordBytes: wordList.length };
  const centroidBytes = new Uint8Array(centroids.buffer);
  const content = [Buffer.from(`${JSON.stringify(header)}\n`), wordList, centroidBytes, codes];
  return gzipSync(Buffer.concat(content), { level: 9 });
}

/** Rows of `size` values each. */
interface Values {
  readonly size: number;
  readonly rows: Float32Array;
}

/** Neighbouring dimensions of all words, word by word. */
function columnsOf({ dimensions, components }: WholeVectors, from: number, size: number): Float32Array {
  const words = components.length / dimensions;
  const columns = new Float32Array(words * size);
  for (let word = 0; word < words; word += 1) {
    const start = word * dimensions + from;
    columns.set(components.subarray(start, start + size), word * size);
  }
  return columns;
}

/** Runs k-means and rounds its centroids to signed bytes. */
function findCentroids(values: Values, { sampleWords, rounds }: QuantiseOptions): Float32Array {
  const { size } = values;
  const sample = { size, rows: spacedRows(values, sampleWords) };
  let centroids = spacedRows(sample, CENTROIDS);
  for (let round = 0; round < rounds; round += 1) {
    centroids = centresOf(sample, nearestOf(sample, centroids), centroids);
  }
  return centroids.map((value) => Math.max(-BYTE_MAX, Math.min(BYTE_MAX, Math.round(value))));
}

/** At most `count` rows, evenly spaced. */
function spacedRows({ size, rows }: Values, count: number): Float32Array {
  const rowCount = rows.length / size;
  const kept = new Float32Array(Math.min(rowCount, count) * size);
  for (let index = 0; index < kept.length / size; index += 1) {
    const start = Math.floor((index * rowCount * size) / kept.length) * size;
    kept.set(rows.subarray(start, start + size), index * size);
  }
  return kept;
}

/** The number of the nearest centroid of each row. */
function nearestOf({ size, rows }: Values, centroids: Float32Array): Uint8Array {
  const codes = new Uint8Array(rows.length / size);
  for (let row = 0; row < codes.length; row += 1) {
    let leastDistance = Number.POSITIVE_INFINITY;
    for (let start = 0; start < centroids.length; start += size) {
      let distance = 0;
      for (let at = 0; at < size; at += 1) {
        const difference = (rows[row * size + at] ?? 0) - (centroids[start + at] ?? 0);
        distance += difference * difference;
      }
      if (distance < leastDistance) {
        leastDistance = distance;
        codes[row] = start / size;
      }
    }
  }
  return codes;
}

/** The mean of the rows of each code. A centroid that has no rows stays where it is. */
function centresOf({ size, rows }: Values, codes: Uint8Array, centroids: Float32Array): Float32Array {
  const sums = new Float64Array(centroids.length);
  const counts = new Uint32Array(centroids.length / size);
  codes.forEach((code, row) => {
    counts[code] = (counts[code] ?? 0) + 1;
    for (let at = 0; at < size; at += 1) {
      sums[code * size + at] = (sums[code * size + at] ?? 0) + (rows[row * size + at] ?? 0);
    }
  });
  return centroids.map((value, at) => {
    const count = counts[Math.floor(at / size)] ?? 0;
    return count === 0 ? value : (sums[at] ?? 0) / count;
  });
}
