import { isIPv4 } from 'node:net'

/** Addresses as numbers. */
export interface Ipv4Range {
  readonly first: number
  readonly size: number
}

/** Throws a TypeError for what is no CIDR. */
export function parseIpv4Range(cidr: string): Ipv4Range {
  const [address = '', bits = ''] = cidr.split('/')
  const length = Number(bits)
  if (!isIPv4(address) || !/^\d{1,2}$/.test(bits) || length > 32) throw new TypeError(`${cidr} is not an IPv4 range`)
  const size = 2 ** (32 - length)
  return { first: ipv4Number(address) - (ipv4Number(address) % size), size }
}

export function isInRange(address: string, range: Ipv4Range): boolean {
  if (!isIPv4(address)) return false
  const number = ipv4Number(address)
  return number >= range.first && number < range.first + range.size
}

export function ipv4Text(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join('.')
}

function ipv4Number(address: string): number {
  return address.split('.').reduce((number, part) => number * 256 + Number(part), 0)
}
