import { isIP } from 'node:net'

/** An IP address or a range of them: what a NetworkPolicy can name. */
export function isAddress(host: string): boolean {
  return toCidr(host) !== undefined
}

export function toCidr(host: string): string | undefined {
  const [address = '', prefix, ...more] = host.split('/')
  const family = isIP(address)
  if (family === 0 || more.length > 0 || address.includes('%')) return undefined
  const bits = family === 4 ? 32 : 128
  if (prefix === undefined) return `${address}/${bits}`
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= bits ? `${address}/${Number(prefix)}` : undefined
}
