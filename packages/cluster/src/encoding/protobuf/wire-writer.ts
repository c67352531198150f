/** Encoded fields of one message, to be joined by who sends them. */
export type Parts = readonly Buffer[]

/** A field with a length: a text, or a message of the given parts. */
export function lengthField(at: number, content: string | Parts): Buffer[] {
  const parts = typeof content === 'string' ? [Buffer.from(content)] : content
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return [Buffer.from([...varint(at * 8 + 2), ...varint(length)]), ...parts]
}

/** For booleans and for integers from 0 on that a number holds exactly. */
export function varintField(at: number, value: number): Buffer[] {
  return [Buffer.from([...varint(at * 8), ...varint(value)])]
}

export function doubleField(at: number, value: number): Buffer[] {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return [Buffer.from(varint(at * 8 + 1)), bytes]
}

function varint(value: number): number[] {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80)
  bytes.push(rest)
  return bytes
}
