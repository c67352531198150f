import { BlockList, isIP } from 'node:net'
import { type Library, RuleError } from './define.ts'

class CelIp {
  readonly text: string
  readonly bytes: readonly number[]

  constructor(text: string, bytes: readonly number[]) {
    this.text = text
    this.bytes = bytes
  }
}

class CelCidr {
  readonly address: CelIp
  readonly bits: number

  constructor(address: CelIp, bits: number) {
    this.address = address
    this.bits = bits
  }
}

/** The namespace of `ip.isCanonical`. */
class CelIpFunctions {}

export const addresses: Library = {
  types: { 'net.IP': CelIp, 'net.CIDR': CelCidr, 'kubernetes.IpFunctions': CelIpFunctions },
  constants: { ip: ['kubernetes.IpFunctions', new CelIpFunctions()] },
  functions: {
    'ip(string): net.IP': (text: string) => mustParse(parseIp(text), `IP Address "${text}" parse error during conversion from string`),
    'isIP(string): bool': (text: string) => parseIp(text) !== undefined,
    'kubernetes.IpFunctions.isCanonical(string): bool': (_ip: CelIpFunctions, text: string) =>
      mustParse(parseIp(text), `IP Address "${text}" parse error`) && canonical(text) === text,
    'net.IP.family(): int': (ip: CelIp) => (ip.bytes.length === 4 ? 4n : 6n),
    'net.IP.isUnspecified(): bool': (ip: CelIp) => ip.bytes.every((byte) => byte === 0),
    'net.IP.isLoopback(): bool': (ip: CelIp) => inside(ip, ['127.0.0.0', 8], ['::1', 128]),
    'net.IP.isLinkLocalMulticast(): bool': (ip: CelIp) => inside(ip, ['224.0.0.0', 24], ['ff02::', 16]),
    'net.IP.isLinkLocalUnicast(): bool': (ip: CelIp) => inside(ip, ['169.254.0.0', 16], ['fe80::', 10]),
    'net.IP.isGlobalUnicast(): bool': (ip: CelIp) =>
      !ip.bytes.every((byte) => byte === 0) &&
      !inside(ip, ['127.0.0.0', 8], ['::1', 128]) &&
      !inside(ip, ['224.0.0.0', 4], ['ff00::', 8]) &&
      !inside(ip, ['169.254.0.0', 16], ['fe80::', 10]) &&
      ip.text !== '255.255.255.255',
    'cidr(string): net.CIDR': (text: string) => mustParse(parseCidr(text), `CIDR "${text}" parse error during conversion from string`),
    'isCIDR(string): bool': (text: string) => parseCidr(text) !== undefined,
    'net.CIDR.containsIP(net.IP): bool': (cidr: CelCidr, ip: CelIp) => contains(cidr, ip),
    'net.CIDR.containsIP(string): bool': (cidr: CelCidr, text: string) =>
      contains(cidr, mustParse(parseIp(text), `IP Address "${text}" parse error`)),
    'net.CIDR.containsCIDR(net.CIDR): bool': (cidr: CelCidr, inner: CelCidr) => inner.bits >= cidr.bits && contains(cidr, inner.address),
    'net.CIDR.containsCIDR(string): bool': (cidr: CelCidr, text: string) => {
      const inner = mustParse(parseCidr(text), `CIDR "${text}" parse error`)
      return inner.bits >= cidr.bits && contains(cidr, inner.address)
    },
    'net.CIDR.ip(): net.IP': (cidr: CelCidr) => cidr.address,
    'net.CIDR.prefixLength(): int': (cidr: CelCidr) => BigInt(cidr.bits),
    'net.CIDR.masked(): net.CIDR': (cidr: CelCidr) => {
      const bytes = cidr.address.bytes.map((byte, index) => byte & maskByte(cidr.bits, index))
      return new CelCidr(new CelIp(bytes.length === 4 ? bytes.join('.') : canonical(hexGroups(bytes)), bytes), cidr.bits)
    },
  },
}

function mustParse<T>(value: T | undefined, problem: string): T {
  if (value === undefined) throw new RuleError(problem)
  return value
}

function parseIp(text: string): CelIp | undefined {
  if (isIP(text) === 4) return new CelIp(text, text.split('.').map(Number))
  // addresses with a zone and IPv4 in IPv6 form are refused by the real server too
  if (isIP(text) !== 6 || text.includes('%') || /^::ffff:\d+\./i.test(text)) return undefined
  return new CelIp(
    canonical(text),
    groupsOf(canonical(text)).flatMap((group) => [group >> 8, group & 255]),
  )
}

function parseCidr(text: string): CelCidr | undefined {
  const [address = '', bits = '', ...rest] = text.split('/')
  const ip = parseIp(address)
  if (!ip || rest.length > 0 || !/^(?:0|[1-9]\d{0,2})$/.test(bits) || Number(bits) > ip.bytes.length * 8) return undefined
  return new CelCidr(ip, Number(bits))
}

function contains(cidr: CelCidr, ip: CelIp): boolean {
  const { bytes } = cidr.address
  return (
    bytes.length === ip.bytes.length && bytes.every((byte, index) => ((byte ^ (ip.bytes[index] ?? 0)) & maskByte(cidr.bits, index)) === 0)
  )
}

function maskByte(bits: number, index: number): number {
  return 256 - 2 ** (8 - Math.min(8, Math.max(0, bits - index * 8)))
}

function inside(ip: CelIp, v4: readonly [string, number], v6: readonly [string, number]): boolean {
  const family = ip.bytes.length === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(...(family === 'ipv4' ? v4 : v6), family)
  return list.check(ip.text, family)
}

/** The URL parser writes IPv6 addresses in their canonical form. */
function canonical(text: string): string {
  return isIP(text) === 6 ? new URL(`http://[${text}]/`).hostname.slice(1, -1) : text
}

function groupsOf(text: string): number[] {
  const [head = '', tail] = text.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const middle = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...middle, ...right].map((group) => Number.parseInt(group, 16))
}

function hexGroups(bytes: readonly number[]): string {
  return Array.from({ length: 8 }, (_, index) => (((bytes[index * 2] ?? 0) << 8) | (bytes[index * 2 + 1] ?? 0)).toString(16)).join(':')
}
