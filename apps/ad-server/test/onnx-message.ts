/**
 * Writes the few fields of ONNX's protocol buffers that a small graph needs. The numbers are those of onnx.proto3. The
 * type of a value decides its encoding: a whole number, or bytes with their length.
 */
type Field = readonly [number: number, value: number | string | Uint8Array];

const FLOAT = 1;
const INT64 = 7;

interface OnnxNode {
  readonly op: "Gather" | "MatMul" | "Identity";
  readonly inputs: readonly string[];
  readonly output: string;
}

export interface OnnxGraph {
  /** Names of the inputs. Each is a matrix of whole numbers: one row for each text, one column for each token. */
  readonly inputs: readonly string[];
  readonly nodes: readonly OnnxNode[];
  readonly output: { readonly name: string; readonly shape: readonly (string | number)[] };
  readonly weights: readonly { name: string; shape: readonly number[]; values: Float32Array }[];
}

export function encodeOnnx({ inputs, nodes, output, weights }: OnnxGraph): Uint8Array {
  const graph = message([
    ...nodes.map(({ op, inputs: from, output: to }): Field => {
      const names = from.map((name): Field => [1, name]);
      return [1, message([...names, [2, to], [3, to], [4, op]])];
    }),
    [2, "tiny"],
    ...weights.map(({ name, shape, values }): Field => {
      const dimensions = shape.map((length): Field => [1, length]);
      return [5, message([...dimensions, [2, FLOAT], [8, name], [9, new Uint8Array(values.buffer)]])];
    }),
    ...inputs.map((name): Field => [11, valueInfo(name, INT64, ["texts", "tokens"])]),
    [12, valueInfo(output.name, FLOAT, output.shape)],
  ]);
  return message([
    [1, 8],
    [7, graph],
    [8, message([[2, 17]])],
  ]);
}

function valueInfo(name: string, elementType: number, shape: readonly (string | number)[]): Uint8Array {
  const dimensions = shape.map(
    (length): Field => [1, message([[typeof length === "number" ? 1 : 2, length]])],
  );
  const tensor = message([
    [1, elementType],
    [2, message(dimensions)],
  ]);
  return message([
    [1, name],
    [2, message([[1, tensor]])],
  ]);
}

function message(fields: readonly Field[]): Uint8Array {
  return Buffer.concat(
    fields.flatMap(([number, value]) => {
      if (typeof value === "number") {
        return [varint(number * 8), varint(value)];
      }
      const bytes = typeof value === "string" ? Buffer.from(value) : value;
      return [varint(number * 8 + 2), varint(bytes.length), bytes];
    }),
  );
}

function varint(value: number): Uint8Array {
  const low = value % 128;
  return value < 128
    ? Uint8Array.of(low)
    : Buffer.concat([Uint8Array.of(low + 128), varint(Math.floor(value / 128))]);
}
