import { endianness } from 'node:os'

/** A line of /proc/net/tcp or tcp6. */
export interface ListeningSocket {
  /** As people write it: `0.0.0.0:3001`, `[::]:3001`. */
  readonly place: string
  readonly loopback: boolean
  readonly uid: number
  readonly inode: string
}

const LISTEN = '0A'

export function parseProcNetTcp(text: string): readonly ListeningSocket[] {
  return text.split('\n').slice(1).flatMap(parseLine)
}

function parseLine(line: string): readonly ListeningSocket[] {
  const [, local = '', , state, , , , uid, , inode = ''] = line.trim().split(/\s+/)
  const [hexAddress = '', hexPort = ''] = local.split(':')
  if (state !== LISTEN || !/^([0-9A-F]{8}|[0-9A-F]{32})$/i.test(hexAddress)) return []
  const bytes = addressBytes(hexAddress)
  const v4 = bytes.length === 4 ? bytes : mappedV4(bytes)
  const port = Number.parseInt(hexPort, 16)
  const place = v4 === undefined ? `[${ipv6Text(bytes)}]:${port}` : `${v4.join('.')}:${port}`
  const loopback = v4 === undefined ? bytes.every((byte, i) => byte === (i === 15 ? 1 : 0)) : v4[0] === 127
  return [{ place, loopback, uid: Number(uid), inode }]
}

/** The kernel prints words of four bytes in the order of the machine. */
function addressBytes(hex: string): readonly number[] {
  const bytes = Buffer.from(hex, 'hex')
  return [...(endianness() === 'LE' ? bytes.swap32() : bytes)]
}

function mappedV4(bytes: readonly number[]): readonly number[] | undefined {
  const mapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff
  return mapped ? bytes.slice(12) : undefined
}

function ipv6Text(bytes: readonly number[]): string {
  const words = Array.from({ length: 8 }, (_, i) => (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16))
  return new URL(`http://[${words.join(':')}]`).hostname.slice(1, -1)
}
