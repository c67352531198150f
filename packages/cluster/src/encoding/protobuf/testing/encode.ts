/** A field with a length: a text, bytes, or a message of the given parts. */
export function field(at: number, ...parts: readonly (string | Buffer)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as Buffer)))
  return Buffer.concat([varint((BigInt(at) << 3n) | 2n), varint(BigInt(content.length)), content])
}

export function number(at: number, value: number | bigint): Buffer {
  return Buffer.concat([varint(BigInt(at) << 3n), varint(BigInt.asUintN(64, BigInt(value)))])
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}
