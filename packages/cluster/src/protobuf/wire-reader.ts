/** Why bytes are no protobuf message; in the words of Go's decoders where there are any. */
export class ProtobufError extends Error {}

export type WireType = 0 | 1 | 2 | 5

/** A field as it stands on the wire. */
export interface WireField {
  readonly number: number
  readonly wire: WireType
  /** For wire type 0. Not a bigint: 64 bits are more than JSON has, and smaller numbers are exact. */
  readonly value: number
  /** For the others. A view, not a copy. */
  readonly bytes: Buffer
}

const NONE = Buffer.alloc(0)

/** The fields of one message in the order in which they were sent. */
export function* wireFields(message: Buffer): Generator<WireField> {
  let at = 0
  const varint = (): bigint => {
    let result = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = message[at++]
      if (byte === undefined) throw new ProtobufError('unexpected EOF')
      result |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, result)
    }
    throw new ProtobufError('proto: integer overflow')
  }
  const take = (length: number): Buffer => {
    if (length > message.length - at) throw new ProtobufError('unexpected EOF')
    at += length
    return message.subarray(at - length, at)
  }
  while (at < message.length) {
    const tag = Number(varint())
    const [number, wire] = [Math.floor(tag / 8), tag % 8]
    if (number < 1 || number > 0x1fffffff) throw new ProtobufError(`proto: illegal tag ${number} (wire type ${wire})`)
    if (wire === 0) yield { number, wire, value: Number(BigInt.asIntN(64, varint())), bytes: NONE }
    else if (wire === 1) yield { number, wire, value: 0, bytes: take(8) }
    else if (wire === 2) yield { number, wire, value: 0, bytes: take(Number(varint())) }
    else if (wire === 5) yield { number, wire, value: 0, bytes: take(4) }
    else throw new ProtobufError(`proto: illegal wireType ${wire}`)
  }
}

/** Numbers one after the other, without tags. */
export function packedNumbers(bytes: Buffer): number[] {
  const numbers: number[] = []
  let value = 0n
  let shift = 0n
  for (const byte of bytes) {
    if (shift >= 70n) throw new ProtobufError('proto: integer overflow')
    value |= BigInt(byte & 0x7f) << shift
    shift += 7n
    if (byte >= 0x80) continue
    numbers.push(Number(BigInt.asIntN(64, value)))
    value = 0n
    shift = 0n
  }
  if (shift > 0n) throw new ProtobufError('unexpected EOF')
  return numbers
}
