export interface BearerChallenge {
  readonly realm: string
  readonly error?: string | undefined
  readonly description?: string | undefined
  /** RFC 9728: where the protected resource's metadata is. */
  readonly resourceMetadata?: string | undefined
  readonly scope?: string | undefined
}

/** A value of `WWW-Authenticate` (RFC 6750 §3). What is undefined is left out. */
export function bearerChallenge(challenge: BearerChallenge): string {
  const { realm, error, description, resourceMetadata, scope } = challenge
  const parameters = { realm, error, error_description: description, resource_metadata: resourceMetadata, scope }
  const texts = Object.entries(parameters).flatMap(([name, value]) => (value === undefined ? [] : `${name}=${quoted(value)}`))
  return `Bearer ${texts.join(', ')}`
}

/** Control characters, line breaks above all, would let a value become a header of its own; what is not ASCII cannot be sent. */
function quoted(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to be removed
  const clean = text.replace(/[\x00-\x1f\x7f]/g, '').replace(/[^\x20-\x7e]/g, '?')
  return `"${clean.replace(/["\\]/g, '\\$&')}"`
}
