import type { AddressPolicy } from '@thv/http/outbound/address-policy'
import type { FetchContext } from './registry-handler.ts'

export function sourceAddressPolicy(
  context: Pick<FetchContext, 'allowPrivateAddresses' | 'allowLoopback' | 'blockedAddresses'>,
): AddressPolicy {
  const { allowPrivateAddresses: allowPrivate, allowLoopback = allowPrivate, blockedAddresses = [] } = context
  return { allowLoopback, allowPrivate, denyPrivate: !allowPrivate, blockedAddresses }
}

/** Behind the reason why an address is refused: that it could be allowed, if it could. */
export function allowHint(reason: string): string {
  return reason.includes('private') || reason.includes('loopback') ? ' (allowPrivateAddresses is off)' : ''
}
