import { Extension, Failure } from './value.ts'

/* Cedar's `ip` type: an IPv4 or IPv6 address with an optional prefix length. */

const FORMAT = (text: string) =>
  new Failure(`error while evaluating \`ip\` extension function: invalid IP address: ${JSON.stringify(text)}`)

export function parseAddress(text: string): Extension | Failure {
  // The engine takes nothing longer than a full IPv6 address with its prefix.
  if (text.length > 43) return FORMAT(text)
  const [address = '', prefixText, ...more] = text.split('/')
  if (more.length > 0) return FORMAT(text)
  const isV6 = address.includes(':')
  const number = isV6 ? parseV6(address) : parseV4(address)
  const bits = isV6 ? 128 : 32
  const prefix = prefixText === undefined ? bits : parsePrefix(prefixText, bits)
  if (number === undefined || prefix === undefined) return FORMAT(text)
  return new Extension('ipaddr', number, bits, prefix)
}

function parsePrefix(text: string, bits: number): number | undefined {
  if (!/^(0|[1-9]\d{0,2})$/.test(text)) return undefined
  const prefix = Number(text)
  return prefix <= bits ? prefix : undefined
}

function parseV4(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return undefined
  return parts.reduce((sum, part) => (sum << 8n) | BigInt(part), 0n)
}

/** IPv4 inside of IPv6 is refused, as the engine does. */
function parseV6(text: string): bigint | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head = [], tail] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const groups = [...head, ...(tail ?? [])]
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  if (tail === undefined ? groups.length !== 8 : groups.length > 7) return undefined
  const zeros = new Array<string>(8 - groups.length).fill('0')
  return [...head, ...zeros, ...(tail ?? [])].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n)
}

/** First and last address of the range that a prefix spans. */
function rangeOf({ number, bits, prefix }: Extension): [bigint, bigint] {
  const rest = BigInt(bits - prefix)
  const first = (number >> rest) << rest
  return [first, first | ((1n << rest) - 1n)]
}

export function isInRange(inner: Extension, outer: Extension): boolean {
  if (inner.bits !== outer.bits) return false
  const [[a, b], [first, last]] = [rangeOf(inner), rangeOf(outer)]
  return a >= first && b <= last
}

const range = (text: string) => parseAddress(text) as Extension
const LOOPBACK = [range('127.0.0.0/8'), range('::1/128')]
const MULTICAST = [range('224.0.0.0/4'), range('ff00::/8')]

export const isLoopback = (address: Extension): boolean => LOOPBACK.some((outer) => isInRange(address, outer))
export const isMulticast = (address: Extension): boolean => MULTICAST.some((outer) => isInRange(address, outer))
