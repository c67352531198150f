import { BlockList, isIP } from 'node:net'
import { headerText } from '@thv/http/header-map'
import type { Exchange } from '@thv/http/server/exchange'

export interface SourceOptions {
  readonly trustProxyHeaders: boolean
  /** Addresses and ranges of proxies in front of this one. */
  readonly trustedProxies: readonly string[]
}

/**
 * Finds the address of the client. That of the connection, unless proxy headers are trusted: then the last entry of X-Forwarded-For
 * that is none of the trusted proxies. Earlier entries are whatever the client wrote.
 */
export function createSourceAddress({ trustProxyHeaders, trustedProxies }: SourceOptions): (exchange: Exchange) => string {
  const trusted = listOf(trustedProxies)
  const isTrusted = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return (exchange) => {
    const peer = plain(exchange.remoteAddress ?? '')
    if (!trustProxyHeaders || (trustedProxies.length > 0 && !isTrusted(peer))) return peer
    const forwarded = headerText(exchange.headers['x-forwarded-for'])
    return forwarded === undefined ? peer : clientOf(forwarded, peer, isTrusted)
  }
}

/** An entry that is no address ends the search: what stands before it cannot be believed either. */
function clientOf(forwarded: string, peer: string, isTrusted: (address: string) => boolean): string {
  const entries = forwarded.split(',')
  let client = peer
  for (let at = entries.length - 1; at >= 0; at--) {
    const address = plain((entries[at] ?? '').trim())
    if (isIP(address) === 0) return client
    client = address
    if (!isTrusted(address)) return client
  }
  return client
}

/** Without brackets, zone and port; an IPv4 address in IPv6 form as IPv4. */
function plain(address: string): string {
  const bare = address.replace(/^\[([^\]]+)\](:\d+)?$/, '$1').replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, '$1')
  return bare.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
}

function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}
