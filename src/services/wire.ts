import type { WireType } from "@bufbuild/protobuf/wire";

/** A field's number and wire type, as its tag stands on the wire. */
export const field = (number: number, type: WireType): number => (number << 3) | type;
