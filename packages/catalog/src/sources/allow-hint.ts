/** Behind the reason why an address is refused: that it could be allowed, if it could. */
export function allowHint(reason: string): string {
  return reason.includes('private') || reason.includes('this machine') ? ' (allowPrivateAddresses is off)' : ''
}
