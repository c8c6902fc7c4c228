import { ProtocolError } from "./frames.js";
import type { ChunkUsage, Row } from "./types.js";

/** What a rows frame holds. */
export interface RowsFrame {
  readonly chunk: number;
  readonly finished: boolean;
  readonly usage: ChunkUsage;
  readonly rows: readonly Row[];
}

const FRAME_BYTES = 33;
/** `<IBxxxddIII`: position, kind, value, metric_ms, three lengths. */
const ROW_BYTES = 36;
const KINDS = ["score", "invalid_case", "metric_exception", "metric_return_value", "ran"] as const;
const EMPTY = new Uint8Array(0);

/** Reads a rows frame's payload; the texts are views of it. Throws `ProtocolError`. */
export function decodeRows(payload: Uint8Array): RowsFrame {
  if (payload.length < FRAME_BYTES) throw new ProtocolError(`a rows frame has ${payload.length} bytes, fewer than 33`);
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const count = view.getUint32(4, true);
  const rows = readRows(view, FRAME_BYTES);
  if (rows.length !== count) throw new ProtocolError(`a rows frame says ${count} rows and holds ${rows.length}`);
  const usage = {
    metricMs: milliseconds(view, 9),
    cpuMs: milliseconds(view, 17),
    coreWaitMs: milliseconds(view, 25),
  };
  return { chunk: view.getUint32(0, true), finished: view.getUint8(8) === 1, usage, rows };
}

/** Reads packed rows, as an outbox holds them; the texts are views of `packed`. Throws `ProtocolError`. */
export function decodePackedRows(packed: Uint8Array): Row[] {
  return readRows(new DataView(packed.buffer, packed.byteOffset, packed.byteLength), 0);
}

/** Nanoseconds to milliseconds; what precision a double lacks is far below a nanosecond's worth. */
export function milliseconds(view: DataView, at: number): number {
  return nanoseconds(view, at) / 1e6;
}

/** A `u64` as a number: exact up to 104 days. */
export function nanoseconds(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
}

function readRows(view: DataView, start: number): Row[] {
  const rows: Row[] = [];
  let at = start;
  while (at < view.byteLength) {
    if (at + ROW_BYTES > view.byteLength) throw new ProtocolError("a row's header is cut off");
    const textBytes = view.getUint32(at + 24, true);
    const detailBytes = view.getUint32(at + 28, true);
    const sideInfoBytes = view.getUint32(at + 32, true);
    const textAt = at + ROW_BYTES;
    const end = textAt + textBytes + detailBytes + sideInfoBytes;
    if (end > view.byteLength) throw new ProtocolError("a row's texts are cut off");
    rows.push({
      position: view.getUint32(at, true),
      kind: rowKind(view.getUint8(at + 4)),
      value: view.getFloat64(at + 8, true),
      metricMs: view.getFloat64(at + 16, true),
      text: part(view, textAt, textBytes),
      detail: part(view, textAt + textBytes, detailBytes),
      sideInfo: part(view, end - sideInfoBytes, sideInfoBytes),
    });
    at = end;
  }
  return rows;
}

function rowKind(kind: number): Row["kind"] {
  const name = KINDS[kind];
  if (name === undefined) throw new ProtocolError(`a row is of kind ${kind}; the kinds are 0 to 4`);
  return name;
}

/** A plain `Uint8Array`, whose making costs a third of `Buffer.subarray`. */
function part(view: DataView, at: number, length: number): Uint8Array {
  return length === 0 ? EMPTY : new Uint8Array(view.buffer, view.byteOffset + at, length);
}
