/** A server's description of the token that it wants (RFC 6750 §3, RFC 9728 §5.1). */
export interface ReadChallenge {
  readonly error: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly resourceMetadata: string | undefined
}

const MAX_CHARACTERS = 8_192

/** The Bearer challenge of a `WWW-Authenticate` header; undefined where there is none. */
export function readBearerChallenge(header: string | undefined): ReadChallenge | undefined {
  const parameters = header === undefined || header.length > MAX_CHARACTERS ? undefined : bearerParameters(header)
  if (parameters === undefined) return undefined
  const scope = parameters.get('scope')?.trim()
  return {
    error: parameters.get('error'),
    scopes: scope ? scope.split(/ +/) : undefined,
    resourceMetadata: parameters.get('resource_metadata'),
  }
}

/** A parameter, or the name of a scheme. */
const PART = /[\s,]*(?:([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))|([\w!#$%&'*+.^`|~-]+)(?=\s|,|$))/y

/** Several challenges can stand in one header, so parameters belong to the scheme that was named last. The first of a name counts. */
function bearerParameters(header: string): Map<string, string> | undefined {
  let found: Map<string, string> | undefined
  let isBearer = false
  PART.lastIndex = 0
  for (let part = PART.exec(header); part !== null; part = PART.exec(header)) {
    const [, name, quoted, plain, scheme] = part
    if (scheme !== undefined) {
      isBearer = scheme.toLowerCase() === 'bearer' && found === undefined
      if (isBearer) found = new Map()
    } else if (isBearer && name !== undefined && !found?.has(name.toLowerCase())) {
      found?.set(name.toLowerCase(), quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '')
    }
  }
  return found
}
