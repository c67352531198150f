/** The host of a metadata document is proven by its fetch; a name is not. */
export function clientLabel(clientId: string, name: string | undefined): string | undefined {
  const host = clientId.startsWith('https://') ? URL.parse(clientId)?.host : undefined
  return host === undefined ? name : `${name ?? 'An application'} (${host})`
}
