import { failed } from './git-error.ts'

/** One packet of git's wire format: bytes, or one of the three marks. */
export type Packet = Buffer | 'flush' | 'delim' | 'end'

/** Cuts a stream into packets. Holds at most one packet, which is at most 64 KB. */
export interface PacketReader {
  push(chunk: Buffer): void
  /** The stream is over; throws if it ended inside a packet. */
  end(): void
}

const MARKS: readonly (Packet | undefined)[] = ['flush', 'delim', 'end']
/** gitprotocol-common: with the four digits of the length. */
const MAX_LENGTH = 65_520

/** A packet is valid only until `onPacket` returns. */
export function createPacketReader(onPacket: (packet: Packet) => void): PacketReader {
  // The beginning of a packet that comes in several chunks: filled in place, so that many small chunks cost no more than a large one.
  const held = Buffer.allocUnsafe(MAX_LENGTH)
  let filled = 0

  function emit(data: Buffer, start: number, length: number): void {
    onPacket(MARKS[lengthAt(data, start)] ?? data.subarray(start + 4, start + length))
  }

  return {
    push(chunk) {
      let at = 0
      while (at < chunk.length) {
        const whole = filled === 0 && chunk.length - at >= 4 ? Math.max(lengthAt(chunk, at), 4) : 0
        if (whole > 0 && at + whole <= chunk.length) {
          emit(chunk, at, whole)
          at += whole
          continue
        }
        const wanted = filled < 4 ? 4 : Math.max(lengthAt(held, 0), 4)
        const taken = chunk.copy(held, filled, at, Math.min(chunk.length, at + wanted - filled))
        filled += taken
        at += taken
        if (filled < 4 || filled < lengthAt(held, 0)) continue
        const length = filled
        filled = 0
        emit(held, 0, length)
      }
    },
    end() {
      if (filled > 0) throw failed('the git server ended its answer in the middle of a packet')
    },
  }
}

export const FLUSH = '0000'
export const DELIM = '0001'

export function packetLine(text: string): string {
  const length = Buffer.byteLength(text) + 5
  return `${length.toString(16).padStart(4, '0')}${text}\n`
}

/** A line without its end. */
export function lineOf(packet: Buffer): string {
  const end = packet.at(-1) === 0x0a ? packet.length - 1 : packet.length
  return packet.toString('utf8', 0, end)
}

/** As written, so 0 to 2 for the marks. */
function lengthAt(data: Buffer, at: number): number {
  let length = 0
  for (let i = at; i < at + 4; i++) length = length * 16 + digitOf(data[i] ?? 0)
  if (length === 3 || length > MAX_LENGTH) throw failed(`the git server sent a packet of an impossible length (${length})`)
  return length
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  if (letter >= 0x61 && letter <= 0x66) return letter - 0x57
  throw failed('the git server sent something that is not the protocol of git')
}
