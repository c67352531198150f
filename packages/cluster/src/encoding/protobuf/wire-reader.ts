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
  const reader = new VarintReader(message)
  while (!reader.isAtEnd) {
    const tag = reader.next()
    const [number, wire] = [Math.floor(tag / 8), tag % 8]
    if (number < 1 || number > 0x1fffffff) throw new ProtobufError(`proto: illegal tag ${number} (wire type ${wire})`)
    if (wire === 0) yield { number, wire, value: reader.next(), bytes: NONE }
    else if (wire === 1) yield { number, wire, value: 0, bytes: reader.take(8) }
    else if (wire === 2) yield { number, wire, value: 0, bytes: reader.take(reader.next()) }
    else if (wire === 5) yield { number, wire, value: 0, bytes: reader.take(4) }
    else throw new ProtobufError(`proto: illegal wireType ${wire}`)
  }
}

/** Numbers one after the other, without tags. */
export function packedNumbers(bytes: Buffer): number[] {
  const reader = new VarintReader(bytes)
  const numbers: number[] = []
  while (!reader.isAtEnd) numbers.push(reader.next())
  return numbers
}

class VarintReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** As a signed number of 64 bits. Most are small and need no bigint. */
  next(): number {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) return low
    }
    let high = 0n
    for (let shift = 0n; shift < 42n; shift += 7n) {
      const byte = this.#byte()
      high |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return Number(BigInt.asIntN(64, (high << 28n) | BigInt(low)))
    }
    throw new ProtobufError('proto: integer overflow')
  }

  take(length: number): Buffer {
    if (length < 0 || length > this.#bytes.length - this.#at) throw new ProtobufError('unexpected EOF')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  #byte(): number {
    const byte = this.#bytes[this.#at++]
    if (byte === undefined) throw new ProtobufError('unexpected EOF')
    return byte
  }
}
