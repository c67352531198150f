/** The scope that leads a client through the login of a provider. */
export function upstreamScope(provider: string): string {
  return `upstream:${provider}`
}
