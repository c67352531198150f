import { isIPv4, isIPv6 } from 'node:net'
import type { GatewayAddress } from '../objects/gateway.ts'
import { isConcreteHostname } from './hostname.ts'

/** The host to name in a URL: the first host name, else the first IP address. Addresses of other types are not used. */
export function addressHost(addresses: readonly GatewayAddress[]): string | undefined {
  for (const { type, value } of addresses) {
    const name = value.toLowerCase()
    if (type === 'Hostname' && isConcreteHostname(name)) return name
  }
  for (const { type, value } of addresses) {
    if (type !== 'IPAddress') continue
    if (isIPv4(value)) return value
    if (isIPv6(value) && !value.includes('%')) return `[${value}]`
  }
  return undefined
}
