import { isIP } from 'node:net'

/** 4 bytes or 16. */
export type IpBytes = readonly number[]

/**
 * Classes of addresses, for code that must not be led astray by one:
 * - `unspecified` 0.0.0.0/8 and ::, which many systems take for "this machine"
 * - `link-local`, where clouds keep their metadata services
 * - `metadata`, those at other addresses
 * - `multicast` and broadcast, never the address of a server
 * - `private`, also of carriers, and what no provider routes
 */
export type IpClass = 'unspecified' | 'loopback' | 'link-local' | 'metadata' | 'multicast' | 'private' | 'public'

const BY_STRICTNESS: readonly IpClass[] = ['unspecified', 'link-local', 'metadata', 'multicast', 'loopback', 'private', 'public']
const LAST_FOUR: IpBytes = [12, 13, 14, 15]

interface Range {
  readonly bytes: IpBytes
  readonly bits: number
  readonly is: IpClass
}

/** The first that holds counts. */
const RANGES: readonly Range[] = [
  range('0.0.0.0/8', 'unspecified'),
  range('127.0.0.0/8', 'loopback'),
  range('169.254.0.0/16', 'link-local'),
  range('100.100.100.200/32', 'metadata'), // Alibaba Cloud
  range('168.63.129.16/32', 'metadata'), // Azure's host agent
  range('192.0.0.192/32', 'metadata'), // Oracle Cloud, classic
  range('10.0.0.0/8', 'private'),
  range('172.16.0.0/12', 'private'),
  range('192.168.0.0/16', 'private'),
  range('100.64.0.0/10', 'private'), // carriers, RFC 6598
  range('192.0.0.0/24', 'private'), // protocol assignments
  range('198.18.0.0/15', 'private'), // benchmarks
  range('224.0.0.0/4', 'multicast'),
  range('255.255.255.255/32', 'multicast'),
  range('240.0.0.0/4', 'private'), // reserved; some networks use it inside
  range('::/128', 'unspecified'),
  range('::1/128', 'loopback'),
  range('fe80::/10', 'link-local'),
  range('fd00:ec2::254/128', 'metadata'), // AWS
  range('fd20:ce::254/128', 'metadata'), // Google Cloud
  range('fc00::/7', 'private'),
  range('fec0::/10', 'private'), // site-local, deprecated
  range('ff00::/8', 'multicast'),
]

/** IPv6 addresses that carry an IPv4 address, which is where the packets end: `at` says in which bytes, or in which it may be. */
const CARRIERS: readonly { readonly bytes: IpBytes; readonly bits: number; readonly at: readonly IpBytes[]; readonly inverted?: true }[] = [
  { ...prefixOf('::ffff:0:0/96'), at: [LAST_FOUR] }, // mapped
  { ...prefixOf('::ffff:0:0:0/96'), at: [LAST_FOUR] }, // translated, RFC 2765
  { ...prefixOf('64:ff9b::/96'), at: [LAST_FOUR] }, // NAT64, RFC 6052
  { ...prefixOf('64:ff9b:1::/48'), at: [LAST_FOUR, [6, 7, 9, 10]] }, // NAT64 of a site, RFC 8215: with prefixes of 96 or 48 bits
  { ...prefixOf('2002::/16'), at: [[2, 3, 4, 5]] }, // 6to4
  { ...prefixOf('2001::/32'), at: [LAST_FOUR], inverted: true }, // Teredo: the client's address
  { ...prefixOf('::/96'), at: [LAST_FOUR] }, // compatible, deprecated; :: and ::1 are not of them
]

/** Undefined when the text is no address. A zone id (`%eth0`) does not change what the address is. */
export function classifyIp(text: string): IpClass | undefined {
  const bytes = parseIp(text)
  return bytes === undefined ? undefined : classOf(bytes)
}

function classOf(bytes: IpBytes): IpClass {
  for (const { bytes: prefix, bits, is } of RANGES) if (startsWith(bytes, prefix, bits)) return is
  if (bytes.length === 4) return 'public'
  for (const { bytes: prefix, bits, at, inverted } of CARRIERS)
    if (startsWith(bytes, prefix, bits)) return strictest(at.map((places) => pick(bytes, places, inverted === true)))
  // ISATAP (RFC 5214): the interface part is 0000:5efe or 0200:5efe and an IPv4 address
  const isatap = (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe
  return isatap ? classOf(pick(bytes, LAST_FOUR, false)) : 'public'
}

function pick(bytes: IpBytes, places: IpBytes, inverted: boolean): IpBytes {
  return places.map((place) => (bytes[place] ?? 0) ^ (inverted ? 0xff : 0))
}

/** Of the addresses that may be meant; zeros are meant only when nothing else is there. */
function strictest(candidates: readonly IpBytes[]): IpClass {
  const classes = candidates.filter((bytes) => bytes.some((byte) => byte !== 0)).map(classOf)
  return classes.length === 0 ? 'unspecified' : (BY_STRICTNESS.find((is) => classes.includes(is)) ?? 'public')
}

export function parseIp(text: string): IpBytes | undefined {
  const bare = text.replace(/%.*$/s, '')
  const family = isIP(bare)
  if (family === 4) return bare.split('.').map(Number)
  return family === 6 ? parseIPv6(bare) : undefined
}

function parseIPv6(text: string): IpBytes {
  const dotted = text.slice(text.lastIndexOf(':') + 1)
  const tail = dotted.includes('.') ? dotted.split('.').map(Number) : []
  const groups = tail.length > 0 ? text.slice(0, text.length - dotted.length) : text
  const [head = '', rest] = groups.split('::')
  const before = groupBytes(head)
  const after = [...groupBytes(rest ?? ''), ...tail]
  if (rest === undefined) return [...before, ...tail]
  return [...before, ...new Array<number>(16 - before.length - after.length).fill(0), ...after]
}

function groupBytes(text: string): number[] {
  return text
    .split(':')
    .filter((group) => group !== '')
    .flatMap((group) => {
      const value = Number.parseInt(group, 16)
      return [value >> 8, value & 0xff]
    })
}

function startsWith(bytes: IpBytes, prefix: IpBytes, bits: number): boolean {
  if (bytes.length !== prefix.length) return false
  for (let i = 0; i * 8 < bits; i++) {
    const shift = Math.max(0, 8 - (bits - i * 8))
    if ((bytes[i] ?? 0) >> shift !== (prefix[i] ?? 0) >> shift) return false
  }
  return true
}

function range(cidr: string, is: IpClass): Range {
  return { ...prefixOf(cidr), is }
}

function prefixOf(cidr: string): { bytes: IpBytes; bits: number } {
  const [address = '', bits = ''] = cidr.split('/')
  return { bytes: parseIp(address) ?? [], bits: Number(bits) }
}
