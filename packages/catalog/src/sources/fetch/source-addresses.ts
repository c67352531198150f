import type { AddressPolicy } from '@thv/http/outbound/address-policy'

export function sourceAddressPolicy(allowPrivate: boolean): AddressPolicy {
  return { allowLoopback: allowPrivate, allowPrivate, denyPrivate: !allowPrivate }
}

/** Behind the reason why an address is refused: that it could be allowed, if it could. */
export function allowHint(reason: string): string {
  return reason.includes('private') || reason.includes('this machine') ? ' (allowPrivateAddresses is off)' : ''
}
