import { failed } from './git-error.ts'

export interface DeltaSizes {
  readonly base: number
  readonly result: number
  /** Where the instructions begin. */
  readonly start: number
}

export function deltaSizes(delta: Buffer): DeltaSizes {
  const base = sizeAt(delta, 0)
  const result = sizeAt(delta, base.next)
  return { base: base.value, result: result.value, start: result.next }
}

/** The object that a delta makes of its base. The caller has bounded the size of the result. */
export function applyDelta(base: Buffer, delta: Buffer): Buffer {
  const sizes = deltaSizes(delta)
  if (sizes.base !== base.length) throw failed('a delta of the pack does not fit its base')
  const result = Buffer.allocUnsafe(sizes.result)
  let at = sizes.start
  let filled = 0
  while (at < delta.length) {
    const op = byteAt(delta, at++)
    if (op === 0) throw failed('a delta of the pack has an unknown instruction')
    let from = delta
    let offset = at
    let length = op
    if (op & 0x80) {
      from = base
      offset = 0
      length = 0
      for (let i = 0; i < 4; i++) if (op & (1 << i)) offset += byteAt(delta, at++) * 2 ** (8 * i)
      for (let i = 0; i < 3; i++) if (op & (0x10 << i)) length |= byteAt(delta, at++) << (8 * i)
      length ||= 0x10000
    } else at += length
    if (offset + length > from.length || filled + length > result.length) throw failed('a delta of the pack reads or writes too far')
    from.copy(result, filled, offset, offset + length)
    filled += length
  }
  if (filled !== result.length) throw failed('a delta of the pack makes less than it says')
  return result
}

/** Seven bits a byte, least significant first. */
function sizeAt(data: Buffer, at: number): { value: number; next: number } {
  let value = 0
  for (let i = 0; i < 7; i++) {
    const byte = byteAt(data, at + i)
    value += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return { value, next: at + i + 1 }
  }
  throw failed('a delta of the pack has a size beyond all bounds')
}

function byteAt(data: Buffer, at: number): number {
  const byte = data[at]
  if (byte === undefined) throw failed('a delta of the pack ends too early')
  return byte
}
