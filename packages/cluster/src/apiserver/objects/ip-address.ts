import type { FieldProblem } from '@thv/kube-schema/kind-schema'
import { invalidValue } from './status-error.ts'

/** An address as a number. An IPv4 address that is written as IPv6 (`::ffff:192.0.2.1`) is one of IPv4. */
export interface IpAddress {
  readonly family: 4 | 6
  readonly value: bigint
}

export interface IpRange {
  readonly family: 4 | 6
  readonly first: bigint
  readonly bits: number
}

/** Undefined for what is no address. Leading zeroes are taken as decimal, as the real server does in fields of long standing. */
export function parseAddress(text: string): IpAddress | undefined {
  const value = text.includes(':') ? parseSix(text) : parseFour(text)
  if (value === undefined) return undefined
  if (!text.includes(':')) return { family: 4, value }
  return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffffffffn } : { family: 6, value }
}

export function parseRange(text: string): IpRange | undefined {
  const [address = '', length, ...more] = text.split('/')
  const parsed = parseAddress(address)
  if (parsed === undefined || length === undefined || more.length > 0 || !/^\d{1,3}$/.test(length)) return undefined
  const width = parsed.family === 4 ? 32 : 128
  const bits = Number(length)
  if (bits > width) return undefined
  const free = BigInt(width - bits)
  return { family: parsed.family, first: (parsed.value >> free) << free, bits }
}

export function rangeSize({ family, bits }: IpRange): bigint {
  return 1n << BigInt((family === 4 ? 32 : 128) - bits)
}

export function inRange(range: IpRange, address: IpAddress): boolean {
  return address.family === range.family && address.value >= range.first && address.value < range.first + rangeSize(range)
}

/** In dotted form. */
export function formatFour(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => String((value >> shift) & 0xffn)).join('.')
}

export function addressProblems(field: string, text: string): FieldProblem[] {
  if (parseAddress(text) !== undefined) return []
  return [invalidValue(field, text, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)')]
}

export function rangeProblems(field: string, text: string): FieldProblem[] {
  if (parseRange(text) !== undefined) return []
  return [invalidValue(field, text, 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')]
}

/** Addresses that stand for no machine, or for each machine itself. */
export function specialAddressProblems(field: string, text: string, { loopback = false } = {}): FieldProblem[] {
  const address = parseAddress(text)
  if (address === undefined) return []
  const within = (...ranges: readonly string[]) => ranges.some((one) => contains(one, address))
  const problems: string[] = []
  if (address.value === 0n) problems.push(`may not be unspecified (${text})`)
  if (!loopback && within('127.0.0.0/8', '::1/128')) problems.push('may not be in the loopback range (127.0.0.0/8, ::1/128)')
  if (within('169.254.0.0/16', 'fe80::/10')) problems.push('may not be in the link-local range (169.254.0.0/16, fe80::/10)')
  if (within('224.0.0.0/24', 'ff02::/16')) problems.push('may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')
  return problems.map((why) => invalidValue(field, text, why))
}

function contains(range: string, address: IpAddress): boolean {
  const parsed = parseRange(range)
  return parsed !== undefined && inRange(parsed, address)
}

function parseFour(text: string): bigint | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  let value = 0n
  for (const part of parts) {
    if (!/^0*\d{1,3}$/.test(part) || Number(part) > 255) return undefined
    value = (value << 8n) | BigInt(Number(part))
  }
  return value
}

function parseSix(text: string): bigint | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map(groups)
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined
  const missing = 8 - head.length - (tail?.length ?? 0)
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined
  const all = [...head, ...Array<bigint>(Math.max(missing, 0)).fill(0n), ...(tail ?? [])]
  return all.reduce((value, group) => (value << 16n) | group, 0n)
}

/** The groups of one side of `::`; the last may be in dotted form. Undefined when one of them is none. */
function groups(text: string): bigint[] | undefined {
  if (text === '') return []
  const found: bigint[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    if (part.includes('.') && index === parts.length - 1) {
      const four = parseFour(part)
      if (four === undefined) return undefined
      found.push(four >> 16n, four & 0xffffn)
    } else if (/^[0-9a-fA-F]{1,4}$/.test(part)) found.push(BigInt(`0x${part}`))
    else return undefined
  }
  return found
}
